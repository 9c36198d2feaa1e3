// A job's training steps: how long they take, where the time goes and by whom, and who waits for whom.

import { duration, element, table } from "./tables.js";

const SVG = "http://www.w3.org/2000/svg";
// The drawing of step times, in its own units, with room for words at its edges.
const CHART = { width: 760, height: 180, left: 90, right: 12, top: 14, bottom: 34 };
// Ranks whose waits are a table.
const MOST_RANKS = 24;
// The least parts of a step from which the colours of waits count.
const SHARES = [0, 0.02, 0.05, 0.1, 0.2, 0.4];

const CAUSES = [
  ["ranks", "slow ranks"],
  ["stages", "stages that differ"],
  ["data", "data that varies"],
  ["noise", "noise of hosts"],
  ["links", "communication"],
];

function drawn(name, attributes, ...content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

function seconds(value) {
  const ns = Math.round(value * 1e9);
  // What replays differ by below 0 is chance.
  return ns > 0 ? duration(ns) : "0";
}

// How long the steps took, as a line, and what they would take if all ranks were alike.
function chart(report) {
  const { width, height, left, right, top, bottom } = CHART;
  const longest = Math.max(...report.times.map((one) => one.seconds), 1e-9);
  const [first, last] = [report.times[0].step, report.times.at(-1).step];
  const x = (step) => left + ((width - left - right) * (step - first)) / Math.max(1, last - first);
  const y = (value) => top + (height - top - bottom) * (1 - value / longest);
  const points = report.times.map((one) => `${x(one.step).toFixed(1)},${y(one.seconds).toFixed(1)}`).join(" ");
  const label = `Times of steps ${first} to ${last}; the longest took ${seconds(longest)}.`;
  const ground = height - bottom;
  const word = (text, attributes) => drawn("text", attributes, text);
  const marks = [
    drawn("line", { class: "axis", x1: left, x2: width - right, y1: ground, y2: ground }),
    word(seconds(longest), { x: left - 6, y: top + 12, "text-anchor": "end" }),
    word("0", { x: left - 6, y: ground, "text-anchor": "end" }),
    word(`step ${first}`, { x: left, y: height - 10 }),
    word(`step ${last}`, { x: width - right, y: height - 10, "text-anchor": "end" }),
  ];
  if (report.latest) {
    const even = y(Math.min(longest, report.latest.even_seconds));
    marks.push(drawn("line", { class: "even", x1: left, x2: width - right, y1: even, y2: even }));
    marks.push(word(`${seconds(report.latest.even_seconds)} if even`, { x: left + 4, y: even - 4 }));
  }
  const line = drawn("polyline", { class: "times", points });
  return drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...marks, line);
}

// Where the time of a step goes: what it would take, then what it takes longer and why.
function shares(latest, all) {
  const bar = (part) => {
    const width = Math.max(0, Math.min(1, part)) * 160;
    const rest = drawn("rect", { class: "rest", width: 160, height: 10 });
    const filled = drawn("rect", { class: "part", width: width.toFixed(1), height: 10 });
    return drawn("svg", { class: "bar", viewBox: "0 0 160 10", "aria-hidden": "true" }, rest, filled);
  };
  const row = (name, of) => ({ name, latest: of(latest), all: of(all) });
  const rows = [row("if all were even", (one) => one.even_seconds)];
  for (const [key, name] of CAUSES) rows.push(row(name, (one) => one.lost_seconds[key]));
  rows.push(row("a step takes", (one) => one.actual_seconds));
  const columns = [
    ["", "", (one) => one.name],
    [`Steps ${latest.first_step} to ${latest.last_step}`, "number", (one) => seconds(one.latest)],
    ["", "more", (one) => bar(one.latest / latest.actual_seconds)],
    [`All ${all.steps} steps`, "number", (one) => seconds(one.all)],
  ];
  return titled("Where the time goes, of one step", columns, rows);
}

function titled(title, columns, rows) {
  const made = element("table", { "aria-label": title });
  table(made, columns, rows, "");
  return [element("h3", {}, title), element("div", { class: "scroll" }, made)];
}

function culprits(latest) {
  const found = [];
  const cost = [
    ["Times as long", "number", (one) => one.ratio.toFixed(2)],
    ["Cost", "number", (one) => seconds(one.cost_seconds)],
    ["Slow steps", "number", (one) => `${one.slow_steps} of ${one.steps}`],
  ];
  const ranks = [["Rank", "number", (one) => one.rank], ["Node", "whole", (one) => one.node], ...cost];
  const what = (one) => (one.is_between ? "between its operations" : one.withheld_ratio >= 0.05 ? "no processor at times" : "computing");
  ranks.push(["Slow at", "more", what]);
  const links = [["From", "whole", (one) => `${one.from} on ${one.from_node}`], ["To", "whole", (one) => `${one.to} on ${one.to_node}`], ...cost];
  const kinds = (one) => one.kinds.map(([name, ratio]) => `${name} ${ratio.toFixed(2)}`).join(", ");
  const stages = [
    ["Stage", "number", (one) => one.stage],
    ["Times as long", "number", (one) => one.ratio.toFixed(2)],
    ["By kind", "", kinds],
    ["Ranks", "number", (one) => one.rank_count],
  ];
  if (latest.ranks.length) found.push(...titled("Slow ranks", ranks, latest.ranks));
  if (latest.links.length) found.push(...titled("Slow links", links, latest.links));
  if (latest.stages.length) found.push(...titled("Stages", stages, latest.stages.toSorted((one, other) => one.stage - other.stage)));
  return found;
}

// Who waits for whom: ranks that wait in rows, those that they wait for in columns.
function waits(report, step) {
  const ranks = (of) => [...new Set(report.waits.map(of))].slice(0, MOST_RANKS).sort((one, other) => one - other);
  const [waiting, awaited] = [ranks((one) => one.rank), ranks((one) => one.awaited)];
  const cells = new Map(report.waits.map((one) => [`${one.rank} ${one.awaited}`, one]));
  const cell = (rank, other) => {
    const known = cells.get(`${rank} ${other}`);
    if (!known) return element("td", {}, "");
    const heat = SHARES.findLastIndex((least) => known.seconds / step >= least);
    const title = `rank ${rank} on ${known.node} waits for rank ${other} on ${known.awaited_node}: ${seconds(known.seconds)} a step`;
    return element("td", { class: `heat-${heat}`, title }, `${Math.round((100 * known.seconds) / step)}%`);
  };
  const heading = awaited.map((other) => element("th", { scope: "col" }, `${other}`));
  const rows = waiting.map((rank) => {
    return element("tr", {}, element("th", { scope: "row" }, `${rank}`), ...awaited.map((other) => cell(rank, other)));
  });
  const title = "Who waits for whom, as parts of a step";
  const head = element("thead", {}, element("tr", {}, element("th", {}, ""), ...heading));
  const made = element("table", { class: "matrix", "aria-label": title }, head, element("tbody", {}, ...rows));
  const about = "Ranks in rows wait for those in columns, the last to begin a communication of both.";
  return [element("h3", {}, title), element("p", {}, about), element("div", { class: "scroll" }, made)];
}

// Shows what is known of the steps; nothing hides the place.
export function showSteps(into, report) {
  into.hidden = !report?.latest;
  if (into.hidden) return;
  const heading = element("h2", { id: "steps-title" }, "Training steps");
  const sentences = element("ul", {}, ...report.text.map((sentence) => element("li", {}, sentence)));
  const parts = [heading, sentences, ...(report.times.length ? [chart(report)] : []), ...shares(report.latest, report.all), ...culprits(report.latest)];
  if (report.waits.length) parts.push(...waits(report, report.latest.actual_seconds));
  if (report.left_out) parts.push(element("p", {}, `${report.left_out} steps were left out, since operations were missing.`));
  into.replaceChildren(...parts);
}
