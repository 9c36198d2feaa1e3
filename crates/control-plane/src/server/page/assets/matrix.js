// Latencies between nodes as a table of numbers on colours. The number says what the colour does, and
// a frame with a mark what is slow, so nothing depends on seeing colours.

import { duration, element } from "./tables.js";

// The least multiples of what is usual from which the colours count; detection begins at 1.25.
const HEATS = [0, 1.1, 1.25, 1.5, 2, 4];

function heat(times) {
  return HEATS.findLastIndex((least) => times >= least);
}

function ratio(times) {
  if (times < 10) return times.toFixed(2);
  return times < 1000 ? times.toFixed(0) : ">999";
}

function cell(known, from, to) {
  if (!known) return element("td", {}, "");
  const link = `${from} to ${to}: ${duration(known.now_ns)}`;
  if (known.times === undefined) return element("td", { title: `${link}; nothing is usual yet` }, "?");
  const title = `${link}, usually ${duration(known.usual_ns)}`;
  const kind = `heat-${heat(known.times)}${known.is_slow ? " slow" : ""}`;
  return element("td", { class: kind, title }, ratio(known.times) + (known.is_slow ? "!" : ""));
}

// Shows a matrix in a table, and what its colours mean in a list.
export function matrix(into, legend, latencies) {
  const { nodes } = latencies;
  const cells = new Map(latencies.cells.map((one) => [one.from * nodes.length + one.to, one]));
  const columns = nodes.map((node, number) => element("th", { scope: "col", title: node }, String(number)));
  const heading = element("tr", {}, element("th", {}, ""), ...columns);
  const rows = nodes.map((node, from) => {
    const name = element("th", { scope: "row" }, `${node} ${from}`);
    const values = nodes.map((other, to) => cell(cells.get(from * nodes.length + to), node, other));
    return element("tr", {}, name, ...values);
  });
  into.replaceChildren(element("thead", {}, heading), element("tbody", {}, ...rows));
  const words = HEATS.map((least, place) => (place ? `from ${least}` : `under ${HEATS[1]}`));
  legend.replaceChildren(...words.map((text, place) => element("li", { class: `heat-${place}` }, text)));
}
