// Plots with uPlot, which is kept beside this file so that the page works without a network.

import { resolved } from "./colours.js";
import { written } from "./format.js";
import { element } from "./cells.js";
import { latest } from "./recent.js";

const HEIGHT = 160;
// The most lines of a plot; a legend of more is not read.
const MOST_LINES = 32;
// Steps of the byte axis, so that its ticks are round in KiB, MiB and GiB.
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/**
 * Draws `plots`, each { title, unit, times, now, lines: [{ name, hue, mean, least, greatest }], areas }, and keeps
 * what can be kept. Areas are stacked on each other, and stand for the line that they add up to. A single line
 * that has them is drawn between its least and its greatest.
 */
export function drawPlots(into, plots) {
  const kept = new Map([...into.children].map((child) => [child.dataset.title, child]));
  const boxes = plots.map((plot) => {
    const lines = curves(plot);
    const data = [plot.times, ...lines.map((line) => line.values)];
    const shape = JSON.stringify([lines.map(({ name, hue }) => [name, hue]), resolved("raised"), plot.times.length === 1]);
    const old = kept.get(plot.title);
    const box = old?.dataset.shape === shape ? old : element("figure", "plot");
    box.own = lines.map((line) => line.own ?? line.values);
    if (box === old) old.plot.setData(data);
    else newPlot(box, plot, lines, data, columnWidth(into, plots.length));
    box.dataset.shape = shape;
    box.drawn = plot;
    describe(box);
    return box;
  });
  for (const child of into.children) {
    if (!boxes.includes(child)) child.plot?.destroy();
  }
  into.replaceChildren(...boxes);
  if (!plots.length) into.append(element("p", "notice", "Nothing to plot yet."));
}

// What is drawn: { name, hue, values, own }, where `own` is what a legend shows of values that are drawn on others.
function curves({ areas, lines }) {
  if (areas) return stacked(areas);
  const shown = lines.slice(0, MOST_LINES);
  if (shown.length === 1 && shown[0].least) return spread(shown[0]);
  return shown.map(({ name, hue, mean }) => ({ name, hue: hue ?? "hue-0", values: mean }));
}

function stacked(areas) {
  const below = areas.at(-1).mean.map((one) => (one === null ? null : 0));
  return areas.map(({ name, hue, mean }) => {
    mean.forEach((one, at) => (below[at] = below[at] === null ? null : below[at] + one));
    return { name, hue, values: [...below], own: mean, isArea: true };
  });
}

// The last two bound the area that the first one runs in.
function spread({ greatest, least, mean, hue = "hue-0" }) {
  return [
    { name: "mean", hue, values: mean },
    { name: "max", hue, values: greatest, isEdge: true },
    { name: "min", hue, values: least, isEdge: true },
  ];
}

function newPlot(box, plot, lines, data, width) {
  box.dataset.title = plot.title;
  const show = written(plot.unit);
  const faint = (name, share) => `color-mix(in srgb, ${resolved(name)} ${share}%, transparent)`;
  const grid = { stroke: resolved("line"), width: 1 };
  const series = lines.map((line, index) => ({
    label: line.name,
    stroke: line.isEdge ? faint(line.hue, 40) : resolved(line.hue),
    width: line.isEdge || line.isArea ? 1 : 1.6,
    fill: line.isArea && index === 0 ? faint(line.hue, 60) : undefined,
    spanGaps: false,
    points: { show: plot.times.length === 1 },
    // Where no moment is pointed at, the newest is.
    value: (_, known, place, at) => {
      const own = box.own[place - 1] ?? [];
      const shown = own[at ?? own.findLastIndex((one) => one !== null)];
      return shown === null || shown === undefined ? "–" : show(shown);
    },
  }));
  const between = (line, index) => (line.isArea && index > 0 ? [{ series: [index + 1, index], fill: faint(line.hue, 60) }] : []);
  const bands = lines[1]?.isEdge ? [{ series: [2, 3], fill: faint(lines[0].hue, 18) }] : lines.flatMap(between);
  const caption = element("figcaption", undefined, plot.title);
  caption.append(" ", element("span"));
  box.append(caption);
  box.plot = new uPlot({
    width,
    height: HEIGHT,
    cursor: { y: false },
    bands,
    legend: { markers: { width: 0, fill: (_, index) => (index ? series[index - 1].stroke : undefined) } },
    scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), (high || 1) * 1.1] } },
    axes: [
      { stroke: resolved("soft"), grid, ticks: grid, size: 32, values: moments },
      { stroke: resolved("soft"), grid, ticks: grid, size: 84, incrs: plot.unit.startsWith("bytes") ? BYTE_STEPS : undefined, values: (_, ticks) => ticks.map(show) },
    ],
    series: [{ label: "At", value: ({ data: [times] }, at) => new Date((at ?? times.at(-1)) * 1000).toLocaleTimeString() }, ...series],
  }, data, box);
  box.querySelector(".u-legend").ariaLabel = `${plot.title} at one moment`;
  // What a canvas shows is not read out; the caption says it in words.
  box.querySelector("canvas").setAttribute("aria-hidden", "true");
}

// The value of the newest snapshot, and the largest that the plot has. Its points are means over the step between them.
function describe(box) {
  const { unit, lines, now } = box.drawn;
  const show = written(unit);
  const newest = now && latest(now);
  const values = lines.flatMap((line) => line.greatest ?? line.mean).filter((one) => one !== null && one !== undefined);
  const words = [];
  if (newest !== undefined) words.push(`${show(newest)} now`);
  if (values.length) words.push(`max ${show(values.reduce((one, other) => Math.max(one, other), newest ?? 0))}`);
  box.querySelector("figcaption span").textContent = words.join(", ");
}

/** Says of each plot what is so now, between two looks into the history. */
export function describePlots(into) {
  for (const box of into.children) if (box.drawn) describe(box);
}

/** Fits the plots to a window whose size has changed. */
export function resizePlots(into) {
  for (const box of into.children) box.plot?.setSize({ width: columnWidth(into, into.children.length), height: HEIGHT });
}

// As wide as the style sheet makes the columns of `#plots`: as many as have room, and no more than plots.
function columnWidth(into, count) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const [least, gap] = [24 * rem, 1.4 * rem];
  const columns = Math.max(Math.min(Math.floor((into.clientWidth + gap) / (least + gap)), count), 1);
  return Math.max((into.clientWidth - (columns - 1) * gap) / columns, 220);
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
