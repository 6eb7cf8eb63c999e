// A bar chart of a series, one bar per step, in the page's colors and the size of its element.

import { hour, short, weekday } from "./formats.js";

const TIME_STEPS = [1, 3, 6, 12].map((hours) => hours * 3600);
const COUNT_STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

export class Chart {
  #element;
  #series = [];
  #plot = null;

  constructor(element) {
    this.#element = element;
    new ResizeObserver(() => this.#plot?.setSize(this.#size)).observe(element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#redraw());
  }

  show(series) {
    this.#series = series;
    if (this.#plot === null) {
      this.#redraw();
    } else {
      this.#plot.setData(this.#points);
    }
  }

  #redraw() {
    this.#plot?.destroy();
    const options = { ...this.#size, ...chartOptions(() => this.#span) };
    this.#plot = this.#series.length ? new uPlot(options, this.#points, this.#element) : null;
  }

  get #points() {
    return [this.#series.map(({ start }) => seconds(start)), this.#series.map(({ count }) => count)];
  }

  // Bars start at their time; the range must include the end of the last one.
  get #span() {
    return [seconds(this.#series[0].start), seconds(this.#series.at(-1).end)];
  }

  get #size() {
    return { width: this.#element.clientWidth, height: this.#element.clientHeight };
  }
}

const seconds = (time) => Date.parse(time) / 1000;

function chartOptions(span) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--faint"), grid: { stroke: color("--edge"), width: 1 }, ticks: { show: false }, gap: 8,
  };
  const bars = {
    stroke: color("--accent"), fill: color("--tint"), width: 2,
    paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false },
  };
  return {
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: span },
      y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] },
    },
    axes: [
      { ...axis, incrs: TIME_STEPS, values: (_, times) => times.map(timeLabel) },
      { ...axis, incrs: COUNT_STEPS, values: (_, counts) => counts.map((count) => short.format(count)) },
    ],
    series: [{}, bars],
  };
}

function timeLabel(time) {
  const at = new Date(time * 1000);
  return at.getHours() === 0 ? `${hour.format(at)}\n${weekday.format(at)}` : hour.format(at);
}
