// The filter: what stands in its box is a query (docs/query.md), and the service says which rows it
// wants, so that the page and `telltale smi --filter` cannot differ. While a query makes no sense, the
// rows of the one before stay.

import { printable } from "./format.js";

const at = (id) => document.getElementById(id);
// Milliseconds without another letter after which a query is asked.
const REST = 200;
// Milliseconds after which an answer is not waited for.
const TIMEOUT = 10_000;

/**
 * `token()` is what to show the service, `place` the page's address, `changed()` is called when there are other
 * rows. Returns { rows(), isOn(), ask(), forget() }.
 */
export function queryBox(token, place, changed) {
  let rows;
  let asking = false;
  let again = false;
  let typing;

  const text = () => at("filter").value.trim();

  function tell(words) {
    at("filter").ariaInvalid = String(Boolean(words));
    at("filter-error").hidden = !words;
    if (at("filter-error").textContent !== words) at("filter-error").textContent = words;
  }

  // One question at a time, and after it the newest: a slow service is not asked what is no longer wanted
  // know any more.
  async function ask() {
    again = asking;
    if (asking) return;
    asking = true;
    const query = text();
    try {
      if (query) await answer(query);
      else forget();
    } catch {
      // Why the service does not answer, its stream tells.
    }
    asking = false;
    changed();
    if (again) await ask();
  }

  async function answer(query) {
    const headers = { Accept: "application/json" };
    if (token()) headers.Authorization = `Bearer ${token()}`;
    const shown = token();
    const signal = AbortSignal.timeout(TIMEOUT);
    const found = await fetch(`api/v1/snapshot?filter=${encodeURIComponent(query)}`, { headers, signal });
    const body = await found.json();
    // Another request may be reading by now.
    if (shown !== token() || query !== text()) {
      again = true;
      return;
    }
    if (found.ok) rows = body;
    tell(found.ok ? "" : pointed(query, body));
  }

  function forget() {
    rows = undefined;
    tell("");
  }

  at("filter").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(ask, text() ? REST : 0);
    place.set({ filter: text() });
  });
  place.bind("filter", (query) => {
    at("filter").value = query;
    ask();
  });

  return {
    /** The snapshot with only the rows that are wanted; nothing where all are, or none are known yet. */
    rows: () => rows,
    isOn: () => Boolean(text()),
    ask,
    forget,
  };
}

// The query with a mark under the place where it stops making sense, and why. The box and the columns
// of a query both count characters.
function pointed(query, { detail, column }) {
  const why = printable(String(detail));
  return column ? `${printable(query)}\n${" ".repeat(column - 1)}^\n${why}` : why;
}
