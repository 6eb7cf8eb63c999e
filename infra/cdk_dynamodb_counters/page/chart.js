// A bar for each step of a series, in the colours of the page's style, as large as the element it stands in.

import { hour, short, weekday } from "./formats.js";

const HOUR_S = 3600;
const TIME_STEPS = [1, 3, 6, 12].map((hours) => hours * HOUR_S);
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
    this.#plot = this.#series.length ? new uPlot({ ...this.#size, ...look() }, this.#points, this.#element) : null;
  }

  get #points() {
    return [this.#series.map(({ start }) => Date.parse(start) / 1000), this.#series.map(({ count }) => count)];
  }

  get #size() {
    return { width: this.#element.clientWidth, height: this.#element.clientHeight };
  }
}

function look() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--faint"), grid: { stroke: colour("--edge"), width: 1 }, ticks: { show: false }, gap: 8,
  };
  const bars = {
    stroke: colour("--accent"), fill: colour("--tint"), width: 2,
    paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false },
  };
  return {
    legend: { show: false },
    cursor: { show: false },
    scales: {
      // A bar begins at its time: the last one needs room too.
      x: { range: (_, first, last) => [first, last + HOUR_S] },
      y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] },
    },
    axes: [
      { ...axis, incrs: TIME_STEPS, values: (_, times) => times.map(timeLabel) },
      { ...axis, incrs: COUNT_STEPS, values: (_, counts) => counts.map((count) => short.format(count)) },
    ],
    series: [{}, bars],
  };
}

function timeLabel(seconds) {
  const at = new Date(seconds * 1000);
  return at.getHours() === 0 ? `${hour.format(at)}\n${weekday.format(at)}` : hour.format(at);
}
