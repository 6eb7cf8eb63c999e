// Polls the API for a total, the members, the top groups and the window of the selected group.

import { scheduleBeacon } from "./beacon.js";
import { Chart } from "./chart.js";
import { hour, moment, second, weekday, whole } from "./formats.js";

const REFRESH_MS = 4000;
const TIMEOUT_MS = 10000;
const LAST = "24h";
const STEP = "1h";
const TOP = 10;
// API Gateway takes 10,240 bytes of a request's line and headers.
const MOST_QUERY = 8000;
const REFUSALS = [400, 413, 414, 431];

const element = (id) => document.getElementById(id);
const chart = new Chart(element("plot"));
let settings = null;
let selected = null;
let running = false;
let again = false;
// Groups whose window the API has refused: anybody may post a name that is too long to be asked for.
const refused = new Set();

const nameOf = (values) => Object.values(values).join(" · ") || "all";
const windowOf = (values) => Object.fromEntries(settings.window.fields.map((field) => [field, values[field]]));
const queryOf = (parameters) => new URLSearchParams(parameters).toString();
const canAsk = (group) => queryOf(group).length <= MOST_QUERY && !refused.has(queryOf(group));

async function read(path, parameters = {}) {
  const query = queryOf(parameters);
  const response = await fetch(query ? `${path}?${query}` : path, {
    // Responses may be cached for longer than the refresh interval.
    cache: "no-cache",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    throw Object.assign(new Error(`${path}: ${response.status}`), { status: response.status });
  }
  return response.json();
}

async function configure() {
  const found = await read("page/settings.json");
  document.title = found.title;
  setText("title", found.title);
  if (found.beacon) {
    scheduleBeacon(found.beacon);
  }
  return found;
}

async function update() {
  settings ??= await configure();
  const { active } = settings;
  const [{ measures }, { groups: ranked }, members] = await Promise.all([
    read(`v1/${settings.total.aggregate}`),
    read(`v1/${settings.top.aggregate}/top`, { limit: TOP }),
    active && read(`v1/${active.name}`, { last: active.last }),
  ]);
  setText("total", whole.format(measures[settings.total.measure]));
  if (members) {
    element("active").hidden = false;
    setText("active-title", `Unique in the last ${active.words}`);
    setText("members", whole.format(members.count));
  }
  do {
    if (selected === null || !canAsk(selected)) {
      selected = ranked.map(({ values }) => windowOf(values)).find(canAsk) ?? null;
    }
    showRanking(ranked);
  } while (selected !== null && !await updateWindow(selected));
  element("updated").hidden = false;
  setText("updated-at", second.format(new Date()));
  setState("live", "Live");
}

// False if the API refuses to tell the group's window.
async function updateWindow(group) {
  const path = `v1/${settings.window.name}`;
  try {
    const [counted, { series }] = await Promise.all([
      read(path, { ...group, last: LAST }),
      read(`${path}/series`, { ...group, last: LAST, step: STEP }),
    ]);
    showWindow(counted, series);
    return true;
  } catch (error) {
    if (!REFUSALS.includes(error.status)) {
      throw error;
    }
    refused.add(queryOf(group));
    return false;
  }
}

// One update at a time, so that no older response overwrites a newer one.
async function refresh() {
  again = running;
  if (running) {
    return;
  }
  running = true;
  try {
    do {
      again = false;
      await update();
    } while (again);
  } catch (error) {
    setState("failed", `Not reachable; retrying (${error.message})`);
  } finally {
    running = false;
  }
}

function setText(id, text) {
  // Screen readers announce changes: leave unchanged text alone.
  if (element(id).textContent !== text) {
    element(id).textContent = text;
  }
}

function setState(state, text) {
  element("state").dataset.state = state;
  setText("state", text);
}

// A leaderboard shows the measure that it ranks by, and no other.
function scoreOf({ measures }) {
  return Object.values(measures)[0];
}

function showRanking(ranked) {
  element("leaderboard").hidden = ranked.length === 0;
  element("empty").hidden = ranked.length > 0;
  element("window").hidden = selected === null;
  if (ranked.length === 0) {
    return;
  }
  showLevels(scoreOf(ranked[0]));
  setText("fields", Object.keys(ranked[0].values).join(" · "));
  const body = element("top");
  const focused = body.contains(document.activeElement) ? document.activeElement.textContent : null;
  body.replaceChildren(...ranked.map((group) => {
    const { values } = group;
    const line = row(canAsk(windowOf(values)) ? groupButton(values) : nameOf(values), whole.format(scoreOf(group)));
    line.style.setProperty("--share", `${100 * scoreOf(group) / Math.max(1, scoreOf(ranked[0]))}%`);
    return line;
  }));
  [...body.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
}

// A line at the foot of the bars, clear of their names, at each level of the threshold that the first one reaches.
function showLevels(first) {
  const { threshold } = settings.top;
  if (!threshold) {
    return;
  }
  element("lines").hidden = false;
  setText("lines", `${threshold.name}: ${threshold.levels.map((level) => whole.format(level)).join(", ")}`);
  const lines = threshold.levels.filter((level) => level > 0 && level <= first).map((level) => {
    const at = 100 * level / first;
    const line = `linear-gradient(to right, transparent calc(${at}% - 2px), var(--text) 0 ${at}%, transparent 0)`;
    return `${line} bottom / 100% .5rem no-repeat`;
  });
  element("top").style.setProperty("--levels", lines.join(", ") || "linear-gradient(transparent, transparent)");
}

function groupButton(values) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = nameOf(values);
  button.setAttribute("aria-pressed", String(nameOf(windowOf(values)) === nameOf(selected)));
  button.addEventListener("click", () => {
    selected = windowOf(values);
    refresh();
  });
  return button;
}

function showWindow({ count, values, start, end }, series) {
  setText("count", whole.format(count));
  setText("group", nameOf(values));
  setText("interval", moment.formatRange(new Date(start), new Date(end)));
  element("steps").replaceChildren(...series.map((step) => {
    const from = new Date(step.start);
    return row(`${weekday.format(from)} ${hour.format(from)}`, whole.format(step.count));
  }));
  chart.show(series);
}

function row(...contents) {
  const line = document.createElement("tr");
  line.append(...contents.map((content) => {
    const cell = document.createElement("td");
    cell.append(content);
    return cell;
  }));
  return line;
}

function refreshIfVisible() {
  if (!document.hidden) {
    refresh();
  }
}

document.addEventListener("visibilitychange", refreshIfVisible);
setInterval(refreshIfVisible, REFRESH_MS);
refresh();
