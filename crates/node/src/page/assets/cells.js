// Parts of a table's row. Text is only ever set as text: names come from strangers.

import { bytes, reason, value } from "./format.js";

/** An element with a class and text. */
export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Plain text; undefined is a dash with the reason as its title. */
export function text(shown, why) {
  if (shown !== undefined) return { text: String(shown) };
  return { text: "–", title: why ?? "not known", className: "absent" };
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

/** Brings a table's cell to what `cell` says, and touches nothing that is so already. */
export function fill(td, cell) {
  if (cell.ratio === undefined) {
    if (td.textContent !== cell.text || td.firstElementChild) td.replaceChildren(cell.text);
  } else {
    if (!td.firstElementChild) td.replaceChildren(element("span", "bar"), element("span", "of"));
    const [bar, words] = td.children;
    bar.style.setProperty("--share", cell.ratio.toFixed(3));
    bar.dataset.level = cell.ratio >= 0.95 ? "high" : cell.ratio >= 0.8 ? "raised" : "normal";
    if (words.textContent !== cell.text) words.textContent = cell.text;
  }
  const title = cell.title ?? "";
  if (td.title !== title) td.title = title;
  td.classList.toggle("absent", cell.className === "absent");
}
