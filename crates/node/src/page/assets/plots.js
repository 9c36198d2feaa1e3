// Plots with uPlot, which is kept beside this file so that the page works without a network.

import { bytes, digits } from "./format.js";
import { element } from "./cells.js";

const UNITS = {
  bytes: (known) => bytes(known),
  celsius: (known) => `${digits(known)} °C`,
  watts: (known) => `${digits(known)} W`,
};
const COLOURS = ["#1d7fb8", "#d98a1f", "#3f9d6b", "#b8527c", "#7a6fd0", "#8a8f94", "#c2b233", "#4bb3b8"];
const HEIGHT = 150;
// Steps of the byte axis, so that its ticks are round in KiB, MiB and GiB.
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Draws `plots`, each { title, unit, times, lines: [{ name, values }] }, and keeps what can be kept. */
export function drawPlots(into, plots) {
  const kept = new Map([...into.children].map((child) => [child.dataset.title, child]));
  const boxes = plots.map((plot) => {
    const data = [plot.times, ...plot.lines.map((line) => line.values)];
    const shape = plot.lines.map((line) => line.name).join("|");
    const old = kept.get(plot.title);
    if (old?.dataset.shape === shape) {
      old.plot.setData(data);
      return old;
    }
    return newPlot(into, plot, data, shape);
  });
  into.replaceChildren(...boxes);
  if (!plots.length) into.append(element("p", "notice", "Nothing to plot yet."));
}

function newPlot(into, plot, data, shape) {
  const box = element("div", "plot");
  box.dataset.title = plot.title;
  box.dataset.shape = shape;
  box.append(element("h3", undefined, plot.title));
  const show = UNITS[plot.unit] ?? digits;
  const ink = getComputedStyle(document.body).color;
  const grid = { stroke: "rgb(128 128 128 / .25)", width: 1 };
  const series = plot.lines.map((line, index) => ({
    label: line.name,
    stroke: COLOURS[index % COLOURS.length],
    width: 1.5,
    dash: line.dashed ? [6, 4] : undefined,
    spanGaps: false,
    points: { show: plot.times.length === 1 },
    value: (_, known) => (known === null || known === undefined ? "–" : show(known)),
  }));
  box.plot = new uPlot({
    width: columnWidth(into),
    height: HEIGHT,
    scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), (high || 1) * 1.1] } },
    axes: [{ stroke: ink, grid, values: moments }, { stroke: ink, grid, size: 78, incrs: plot.unit === "bytes" ? BYTE_STEPS : undefined, values: (_, ticks) => ticks.map(show) }],
    series: [{ label: "At", value: (_, at) => (at ? new Date(at * 1000).toLocaleString() : "–") }, ...series],
  }, data, box);
  return box;
}

// One column on a phone, else two.
function columnWidth(into) {
  const whole = into.clientWidth;
  return Math.max(whole < 700 ? whole : (whole - 16) / 2, 240);
}

// Ticks of the time axis: the date only where a tick is a day or more apart from the next.
function moments(_, ticks, axis, space, step) {
  const two = (part) => String(part).padStart(2, "0");
  return ticks.map((tick) => {
    const at = new Date(tick * 1000);
    if (step >= 86_400) return `${at.getMonth() + 1}/${at.getDate()}`;
    const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
    return step >= 60 ? minutes : `${minutes}:${two(at.getSeconds())}`;
  });
}
