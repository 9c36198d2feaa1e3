// What the page shows, in its address after the #: a link shows a colleague the same, and the
// browser's way back closes a panel. A token is never in there.

/** Returns { bind(name, apply), set(name, value, options), get(name) }. */
export function address() {
  const bound = new Map();
  let state = read();

  function read() {
    return new URLSearchParams(location.hash.slice(1));
  }

  // The address was changed by its reader, or by the browser's ways back and forward.
  function follow() {
    const before = state;
    state = read();
    for (const [name, apply] of bound) {
      const value = state.get(name) ?? "";
      if ((before.get(name) ?? "") !== value) apply(value);
    }
  }

  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);

  return {
    /** What the address has under this name; an empty text where it has nothing. */
    get: (name) => state.get(name) ?? "",
    /** Calls `apply` with what the address has under this name: now where it has something, and when that changes. */
    bind(name, apply) {
      bound.set(name, apply);
      const value = state.get(name);
      if (value) apply(value);
    },
    /** Puts values into the address, an empty one for nothing; `step` makes it one that the way back leads over. */
    set(values, { step = false } = {}) {
      const before = state.toString();
      for (const [name, value] of Object.entries(values)) {
        if (value) state.set(name, value);
        else state.delete(name);
      }
      const now = state.toString();
      if (now === before) return;
      history[step ? "pushState" : "replaceState"](null, "", now ? `#${now}` : location.pathname + location.search);
    },
  };
}
