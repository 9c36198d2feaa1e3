// Parts of a table's row. Text is only ever set as text, without characters that steer: names come
// from strangers.

import { bytes, printable, reason, value } from "./format.js";

/** An element with a class and text. */
export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = printable(String(text));
  return made;
}

/** Plain text; undefined is a dash with the reason as its title. */
export function text(shown, why) {
  if (shown !== undefined) return { text: String(shown) };
  return { text: "–", title: why ?? "not known", absent: true };
}

/** A reading as text, made by `show`. */
export function reading(of, show) {
  const known = value(of);
  return known === undefined ? text(undefined, reason(of)) : text(show(known));
}

/** A share of a whole as a bar, with both in words. `limit` alone may be missing. */
export function share(used, limit, show) {
  const known = value(used);
  if (known === undefined) return text(undefined, reason(used));
  const whole = value(limit);
  if (!whole) return { text: show(known), title: `limit: ${reason(limit)}` };
  return { text: `${show(known)} / ${show(whole)}`, ratio: Math.min(known / whole, 1) };
}

/** Bytes of a space against its capacity. */
export function space(of) {
  if (!of) return text(undefined, "this device has none");
  return share(of.used_bytes, of.capacity_bytes, bytes);
}

/** A bar that fill() and others bring up to date. */
export function bar(ratio) {
  const made = element("span", "bar");
  setBar(made, ratio);
  return made;
}

function setBar(made, ratio) {
  made.style.setProperty("--share", ratio.toFixed(3));
  made.dataset.level = ratio >= 0.95 ? "high" : ratio >= 0.8 ? "raised" : "normal";
}

/**
 * Brings a table's cell to what `cell` says: { text, after, title, ratio, trend, absent }. What a cell
 * showed last is remembered, because reading it from the document costs more than all the rest.
 */
export function fill(td, cell) {
  const last = td.last ?? {};
  if (last.text === cell.text && last.after === cell.after && last.title === cell.title && last.ratio === cell.ratio && last.trend === cell.trend) return;
  td.last = cell;
  const into = td.into ?? td;
  if (cell.trend !== undefined) {
    drawTrend(into, cell.trend);
  } else if (cell.ratio === undefined && cell.after === undefined) {
    into.textContent = printable(cell.text);
  } else if (last.text !== cell.text || last.after !== cell.after || !into.children.length) {
    into.replaceChildren(element(cell.after === undefined ? "span" : "bdi", undefined, cell.text));
    if (cell.after) into.append(element("small", undefined, cell.after));
    if (cell.ratio !== undefined) into.append(bar(cell.ratio));
  } else if (cell.ratio !== undefined) {
    setBar(into.lastElementChild, cell.ratio);
  }
  if (last.title !== cell.title) td.title = printable(cell.title ?? "");
  td.classList.toggle("absent", Boolean(cell.absent));
  td.classList.toggle("empty", cell.text === "" && cell.trend === undefined);
}

const SVG = "http://www.w3.org/2000/svg";

// A curve in a row; its values are in the cell beside it, so it is hidden from screen readers.
function drawTrend(into, path) {
  let svg = into.firstElementChild;
  if (!svg) {
    svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "trend");
    svg.setAttribute("viewBox", "0 0 100 20");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const area = document.createElementNS(SVG, "path");
    area.setAttribute("class", "area");
    svg.append(area, document.createElementNS(SVG, "path"));
    into.replaceChildren(svg);
  }
  svg.firstElementChild.setAttribute("d", path && `${path}V20H${path.slice(1).split(",")[0]}Z`);
  svg.lastElementChild.setAttribute("d", path);
}
