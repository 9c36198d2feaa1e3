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

/** Bytes of a space against its capacity; `parts` are those of processes, as holders.js has them. */
export function space(of, parts = []) {
  if (!of) return text(undefined, "this device has none");
  const cell = share(of.used_bytes, of.capacity_bytes, bytes);
  return cell.ratio === undefined ? cell : { ...cell, ...stacked(parts, value(of.capacity_bytes)) };
}

/** What a bar of `parts` of a whole shows, and in words when a pointer rests on it. */
export function stacked(parts, whole) {
  if (!parts.length) return {};
  return {
    parts: parts.map(({ hue, bytes: part }) => ({ hue, share: part / whole })),
    title: parts.map(({ name, bytes: part }) => `${name}: ${bytes(part)}`).join("; "),
  };
}

/** A bar that fill() and others bring up to date: one part, or one for each of `parts`. */
export function bar(ratio, parts) {
  const made = element("span", "bar");
  setBar(made, ratio, parts);
  return made;
}

function setBar(made, ratio, parts) {
  made.classList.toggle("stacked", Boolean(parts));
  made.dataset.level = level(ratio);
  const shown = parts ?? [{ share: ratio }];
  while (made.children.length > shown.length) made.lastElementChild.remove();
  shown.forEach(({ share: part, hue }, at) => {
    const one = made.children[at] ?? made.appendChild(element("i"));
    one.style.width = `${(Math.min(part, 1) * 100).toFixed(2)}%`;
    one.style.background = hue ? `var(--${hue})` : "";
  });
}

/** How much of its limit something has reached, in steps that have a colour each. */
export function level(ratio) {
  return ratio >= 0.95 ? "high" : ratio >= 0.8 ? "raised" : "normal";
}

/** The mark of a process's colour before its name. */
export function swatch(hue) {
  const made = element("i", "swatch");
  made.style.background = `var(--${hue})`;
  return made;
}

/**
 * Brings a table's cell to what `cell` says: { text, after, title, hue, ratio, parts, trend, absent }. What a
 * cell showed last is remembered, because reading it from the document costs more than all the rest.
 */
export function fill(td, cell) {
  const last = td.last ?? {};
  const isSame = (name) => last[name] === cell[name];
  if (["text", "after", "title", "hue", "ratio", "trend"].every(isSame) && sameParts(last.parts, cell.parts)) return;
  td.last = cell;
  const into = td.into ?? td;
  if (cell.trend !== undefined) {
    drawTrend(into, cell.trend);
  } else if (cell.ratio === undefined && cell.after === undefined && cell.hue === undefined) {
    into.textContent = printable(cell.text);
  } else if (!["text", "after", "hue"].every(isSame) || !into.children.length) {
    into.replaceChildren(...(cell.hue ? [swatch(cell.hue)] : []), element(cell.after === undefined ? "span" : "bdi", undefined, cell.text));
    if (cell.after) into.append(element("small", undefined, cell.after));
    if (cell.ratio !== undefined) into.append(bar(cell.ratio, cell.parts));
  } else if (cell.ratio !== undefined) {
    setBar(into.lastElementChild, cell.ratio, cell.parts);
  }
  if (!isSame("title")) td.title = printable(cell.title ?? "");
  td.classList.toggle("absent", Boolean(cell.absent));
  td.classList.toggle("empty", cell.text === "" && cell.trend === undefined);
}

function sameParts(one, other) {
  return one === other || (one?.length === other?.length && one.every((part, at) => part.hue === other[at].hue && part.share === other[at].share));
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
