// Plots with uPlot, which is kept beside this file so that the page works without a network.

import { duration, written } from "./format.js";
import { element } from "./cells.js";

const COLOURS = 8;
const HEIGHT = 160;
// The most lines of a plot; a legend of more is not read.
const MOST_LINES = 32;
// Steps of the byte axis, so that its ticks are round in KiB, MiB and GiB.
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/**
 * Draws `plots`, each { title, unit, times, lines: [{ name, mean, least, greatest }] }, and keeps what
 * can be kept. A single line that has them is drawn between its least and its greatest.
 */
export function drawPlots(into, plots) {
  const kept = new Map([...into.children].map((child) => [child.dataset.title, child]));
  const boxes = plots.map((plot) => {
    const shown = plot.lines.slice(0, MOST_LINES);
    const lines = shown.length === 1 && shown[0].least ? spread(shown[0]) : shown.map(({ name, mean }) => ({ name, values: mean }));
    const data = [plot.times, ...lines.map((line) => line.values)];
    const shape = `${lines.map((line) => line.name).join("|")} ${dark.matches} ${plot.times.length === 1}`;
    const old = kept.get(plot.title);
    const box = old?.dataset.shape === shape ? old : newPlot(plot, lines, data, shape, columnWidth(into, plots.length));
    if (box === old) old.plot.setData(data);
    describe(box, plot);
    return box;
  });
  for (const child of into.children) {
    if (!boxes.includes(child)) child.plot?.destroy();
  }
  into.replaceChildren(...boxes);
  if (!plots.length) into.append(element("p", "notice", "Nothing to plot yet."));
}

const dark = matchMedia("(prefers-color-scheme: dark)");

// The last two bound the area that the first one runs in.
function spread({ greatest, least, mean }) {
  return [
    { name: "mean", values: mean },
    { name: "max", values: greatest, edge: true },
    { name: "min", values: least, edge: true },
  ];
}

function newPlot(plot, lines, data, shape, width) {
  const box = element("figure", "plot");
  box.dataset.title = plot.title;
  box.dataset.shape = shape;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const show = written(plot.unit);
  const grid = { stroke: colour("line"), width: 1 };
  const series = lines.map((line, index) => ({
    label: line.name,
    stroke: line.edge ? `${colour("line-1")}66` : colour(`line-${(index % COLOURS) + 1}`),
    width: line.edge ? 1 : 1.6,
    spanGaps: false,
    points: { show: plot.times.length === 1 },
    value: (_, known) => (known === null || known === undefined ? "–" : show(known)),
  }));
  const caption = element("figcaption", undefined, plot.title);
  caption.append(" ", element("span"));
  box.append(caption);
  box.plot = new uPlot({
    width,
    height: HEIGHT,
    cursor: { y: false },
    bands: lines[1]?.edge ? [{ series: [2, 3], fill: `${colour("line-1")}2e` }] : [],
    scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), (high || 1) * 1.1] } },
    axes: [
      { stroke: colour("soft"), grid, ticks: grid, size: 32, values: moments },
      { stroke: colour("soft"), grid, ticks: grid, size: 74, incrs: plot.unit === "bytes" ? BYTE_STEPS : undefined, values: (_, ticks) => ticks.map(show) },
    ],
    series: [{ label: "At", value: (_, at) => (at ? new Date(at * 1000).toLocaleTimeString() : "–") }, ...series],
  }, data, box);
  box.querySelector(".u-legend").ariaLabel = `${plot.title} at one moment`;
  // What a canvas shows is not read out; the caption says it in words.
  box.querySelector("canvas").setAttribute("aria-hidden", "true");
  return box;
}

// The newest and the largest value in the caption. Points are means over the step between them.
function describe(box, plot) {
  const show = written(plot.unit);
  const isKnown = (one) => one !== null && one !== undefined;
  const values = plot.lines.flatMap((line) => line.greatest ?? line.mean).filter(isKnown);
  const means = plot.lines.length === 1 ? plot.lines[0].mean : [];
  const place = means.findLastIndex(isKnown);
  const words = [];
  if (place >= 0) words.push(`${show(means[place])} ${spanOf(plot.times, place)}`);
  if (values.length) words.push(`max ${show(values.reduce((one, other) => Math.max(one, other), 0))}`);
  box.querySelector("figcaption span").textContent = words.join(", ");
}

function spanOf(times, place) {
  if (place < times.length - 1) return `at ${new Date(times[place] * 1000).toLocaleTimeString()}`;
  return place > 0 ? `in the last ${duration(times[place] - times[place - 1])}` : "now";
}

/** Fits the plots to a window whose size has changed. */
export function resizePlots(into) {
  for (const box of into.children) box.plot?.setSize({ width: columnWidth(into, into.children.length), height: HEIGHT });
}

// One column on a phone, else two.
function columnWidth(into, count) {
  const whole = into.clientWidth;
  return Math.max(whole < 790 || count < 2 ? whole : (whole - 22) / 2, 220);
}

// Ticks of the time axis: the date only where a tick is a day or more apart from the next.
function moments(_, ticks, axis, space, step) {
  const two = (part) => String(part).padStart(2, "0");
  return ticks.map((tick) => {
    const at = new Date(tick * 1000);
    if (step >= 86_400) return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
    return step >= 60 ? minutes : `${minutes}:${two(at.getSeconds())}`;
  });
}
