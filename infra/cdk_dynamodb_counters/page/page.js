"use strict";

(() => {
  const REFRESH_MS = 4000;
  const BEACON_MS = 3000;
  const LAST = "24h";
  const STEP = "1h";
  const number = new Intl.NumberFormat("en");
  const time = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
  const hour = new Intl.DateTimeFormat("en", { weekday: "short", hour: "2-digit", minute: "2-digit", hour12: false });
  const element = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let settings;
  let chosen = null;
  let plot = null;
  let drawn = null;

  async function read(path, parameters) {
    const query = new URLSearchParams(parameters).toString();
    const response = await fetch(query ? `${path}?${query}` : path, { cache: "no-cache" });
    if (!response.ok) {
      throw new Error(`${path}: ${response.status}`);
    }
    return response.json();
  }

  function text(id, value) {
    const target = element(id);
    // A screen reader reads what changes: what stays the same is left alone.
    if (target.textContent !== value) {
      target.textContent = value;
    }
  }

  function row(...cells) {
    const line = document.createElement("tr");
    for (const content of cells) {
      const cell = document.createElement("td");
      cell.append(content);
      line.append(cell);
    }
    return line;
  }

  const name = (values) => Object.values(values).join(" · ") || "all";
  const group = (values) => Object.fromEntries(settings.window.fields.map((field) => [field, values[field]]));

  function showTop(ranked) {
    const body = element("top");
    const focused = body.contains(document.activeElement) ? document.activeElement.textContent : null;
    body.replaceChildren(...ranked.map(({ values, score }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name(values);
      button.setAttribute("aria-pressed", String(chosen !== null && name(group(values)) === name(chosen)));
      button.addEventListener("click", () => { chosen = group(values); refresh(); });
      return row(button, number.format(score));
    }));
    for (const button of body.querySelectorAll("button")) {
      if (button.textContent === focused) {
        button.focus();
      }
    }
  }

  function showWindow(counted, series) {
    text("count", number.format(counted.count));
    text("group", name(counted.values));
    text("interval", `${time.format(new Date(counted.start))} to ${time.format(new Date(counted.end))}`);
    const steps = element("steps");
    steps.replaceChildren(...series.map(({ start, count }) => row(hour.format(new Date(start)), number.format(count))));
    drawn = series;
    draw();
  }

  function draw() {
    if (drawn === null) {
      return;
    }
    const data = [drawn.map(({ start }) => Date.parse(start) / 1000), drawn.map(({ count }) => count)];
    if (plot !== null) {
      plot.setData(data);
      return;
    }
    const style = getComputedStyle(document.documentElement);
    const colour = (part) => style.getPropertyValue(part).trim();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--edge"), width: 1 }, ticks: { show: false } };
    plot = new uPlot({
      width: element("plot").clientWidth,
      height: 220,
      legend: { show: false },
      cursor: { show: false },
      // Bars begin at their time: the last one needs room too.
      scales: { x: { range: (self, low, high) => [low, high + (high - low) / (drawn.length - 1)] }, y: { range: (self, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [axis, { ...axis, size: 48, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 100000] }],
      series: [{}, { stroke: colour("--line"), fill: colour("--line") + "33", width: 2,
        paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false } }],
    }, data, element("plot"));
  }

  function redraw() {
    if (plot !== null) {
      plot.destroy();
      plot = null;
      draw();
    }
  }

  let running = false;
  let again = false;

  async function refresh() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        const [total, top] = await Promise.all([
          read(`v1/aggregates/${settings.total.aggregate}`),
          read(`v1/aggregates/${settings.top.aggregate}/top`, { count: 10 }),
        ]);
        text("total", number.format(total.measures[settings.total.measure]));
        if (chosen === null && top.ranked.length) {
          chosen = group(top.ranked[0].values);
        }
        showTop(top.ranked);
        if (chosen !== null) {
          const path = `v1/windows/${settings.window.name}`;
          const [counted, steps] = await Promise.all([
            read(path, { ...chosen, last: LAST }),
            read(`${path}/series`, { ...chosen, last: LAST, step: STEP }),
          ]);
          showWindow(counted, steps.series);
        }
        text("state", "Live");
      } while (again);
    } catch (error) {
      text("state", `Not reachable, trying again (${error.message})`);
    } finally {
      running = false;
    }
  }

  function client() {
    try {
      let known = localStorage.getItem("client");
      if (known === null) {
        known = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
        localStorage.setItem("client", known);
      }
      return known;
    } catch {
      return "private";
    }
  }

  function beacon() {
    const places = { "{page}": location.pathname, "{time}": new Date().toISOString(), "{client}": client() };
    const event = Object.fromEntries(Object.entries(settings.beacon.event).map(([attribute, template]) =>
      [attribute, template.replace(/\{(page|time|client)\}/g, (place) => places[place])]));
    navigator.sendBeacon(settings.beacon.path, JSON.stringify(event));
  }

  async function start() {
    settings = await read("page/settings.json");
    document.title = settings.title;
    text("title", settings.title);
    dark.addEventListener("change", redraw);
    addEventListener("resize", redraw);
    await refresh();
    setInterval(() => { if (!document.hidden) { refresh(); } }, REFRESH_MS);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) { refresh(); } });
    if (settings.beacon) {
      setTimeout(beacon, BEACON_MS);
    }
  }

  start().catch((error) => text("state", `The page could not start (${error.message})`));
})();
