// What single keys do, wherever the focus is but in a field or a dialog.

/** `actions` maps a key to what it does. */
export function keys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") {
        // Chromium would empty the box of a search without an event, and the rows would stay filtered.
        event.preventDefault();
        event.target.blur();
      }
      return;
    }
    if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  });
}

// Over the rows of all tables, one after the other.
function move(by) {
  const rows = [...document.querySelectorAll("tbody .open")];
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
}
