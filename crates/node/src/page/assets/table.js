// A table that is sorted by its columns and keeps its rows while figures change, so that focus,
// selection and a screen reader's place stay where they are.

import { element, fill } from "./cells.js";

/**
 * @param table    the table element, empty
 * @param columns  [{ name, title, cell(item), sort(item), number }]: what a column shows, and by what it is sorted
 * @param options  { key(item), order: [column, descending], open(item), label(item), empty }
 */
export function sortedTable(table, columns, options) {
  let [by, descending] = options.order;
  let shown = [];
  const rows = new Map();
  const heads = columns.map((column) => heading(column, () => {
    descending = by === column.name ? !descending : Boolean(column.number);
    by = column.name;
    draw();
  }));
  const head = element("thead");
  const line = element("tr");
  line.append(...heads);
  head.append(line);
  const body = element("tbody");
  table.append(head, body);

  function draw() {
    const column = columns.find((one) => one.name === by);
    heads.forEach((th, index) => {
      const sorted = columns[index].name === by;
      th.ariaSort = sorted ? (descending ? "descending" : "ascending") : "none";
    });
    const items = [...shown].sort((one, other) => {
      const order = compare(column.sort(one), column.sort(other), descending);
      return order || compare(options.key(one), options.key(other), false);
    });
    const keys = new Set(items.map(options.key));
    for (const [key, row] of rows) {
      if (!keys.has(key)) {
        row.remove();
        rows.delete(key);
      }
    }
    items.forEach((item, place) => {
      const row = rows.get(options.key(item)) ?? newRow(item);
      row.item = item;
      [...row.children].forEach((td, index) => fill(td, columns[index].cell(item)));
      if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
    });
    let nothing = table.querySelector("caption");
    if (!items.length && !nothing) {
      nothing = element("caption", "notice");
      table.prepend(nothing);
    }
    if (nothing) {
      nothing.hidden = items.length > 0;
      nothing.textContent = items.length ? "" : options.empty();
    }
  }

  function newRow(item) {
    const row = element("tr");
    row.tabIndex = 0;
    row.dataset.key = options.key(item);
    for (const column of columns) {
      const td = element("td", column.number ? "number" : undefined);
      td.dataset.column = column.title;
      row.append(td);
    }
    row.addEventListener("click", () => options.open(row.item));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") options.open(row.item);
    });
    rows.set(options.key(item), row);
    return row;
  }

  return {
    /** Shows these items. */
    show(items) {
      shown = items;
      draw();
    },
  };
}

function heading(column, sort) {
  const th = element("th", column.number ? "number" : undefined);
  th.scope = "col";
  const button = element("button", undefined, column.title);
  button.type = "button";
  button.addEventListener("click", sort);
  th.append(button);
  return th;
}

// What is not known comes last, whichever way.
function compare(one, other, descending) {
  if (one === other) return 0;
  if (one === undefined) return 1;
  if (other === undefined) return -1;
  const order = typeof one === "number" ? one - other : String(one).localeCompare(String(other), undefined, { numeric: true });
  return descending ? -order : order;
}
