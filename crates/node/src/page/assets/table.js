// A table that is sorted by its columns and keeps its rows while values change, so that focus,
// selection and a screen reader's place stay where they are. One row of each table is in the order
// of Tab; the arrows go from row to row.

import { element, fill } from "./cells.js";

// Rows that are shown unless all are wanted: laying out 2,000 takes a browser as long as
// the whole time from one snapshot to the next.
const MOST_ROWS = 200;

/**
 * @param table    the table element, empty
 * @param columns  [{ name, title, cell(item), sort(item), number, className, has(item) }]: what a column shows
 *                 and by what it is sorted, if it is; one that no item has is not shown; the
 *                 first one names the row and opens its details
 * @param options  { key(item), order: "column" or "column:desc", ordered(order), open(item), label(item), empty() };
 *                 `ordered` is called with another order that a reader chose
 */
export function sortedTable(table, columns, options) {
  let by;
  let descending;
  sortBy(options.order);
  let shown = [];
  let most = MOST_ROWS;
  const rows = new Map();
  const heads = columns.map((column) => heading(column, () => {
    descending = by === column.name ? !descending : Boolean(column.number);
    by = column.name;
    options.ordered(orderNow());
    draw();
  }));
  const head = element("thead");
  const line = element("tr");
  line.append(...heads);
  head.append(line);
  const body = element("tbody");
  const nothing = element("caption", "notice", "No data yet.");
  const more = element("button", "more");
  more.type = "button";
  more.hidden = true;
  more.addEventListener("click", () => {
    most = most === Infinity ? MOST_ROWS : Infinity;
    draw();
  });
  table.append(nothing, head, body);
  table.after(more);
  body.addEventListener("keydown", (event) => {
    const to = { ArrowDown: 1, ArrowUp: -1, Home: -rows.size, End: rows.size }[event.key];
    if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const all = [...body.children];
    const at = all.indexOf(event.target.closest("tr"));
    all[Math.min(Math.max(at + to, 0), all.length - 1)].opener.focus();
  });
  body.addEventListener("focusin", (event) => inTabOrder(event.target.closest("tr")));

  function inTabOrder(row) {
    for (const opener of body.querySelectorAll('.open[tabindex="0"]')) opener.tabIndex = -1;
    if (row) row.opener.tabIndex = 0;
  }

  function orderNow() {
    return descending ? `${by}:desc` : by;
  }

  function sortBy(order) {
    [by, descending] = [order.split(":")[0], order.endsWith(":desc")];
  }

  function ordered() {
    const column = columns.find((one) => one.name === by);
    const items = shown.map((item) => ({ item, key: options.key(item), by: column.sort(item) }));
    items.sort((one, other) => compare(one.by, other.by, descending) || compare(one.key, other.key, false));
    return items;
  }

  function draw() {
    heads.forEach((th, index) => {
      const sorted = columns[index].name === by;
      if (columns[index].sort) th.ariaSort = sorted ? (descending ? "descending" : "ascending") : "none";
    });
    const all = ordered();
    const items = all.slice(0, most);
    more.hidden = all.length <= MOST_ROWS;
    more.textContent = items.length < all.length ? `These are ${items.length} of ${all.length} rows; show all` : `Show ${MOST_ROWS} rows`;
    const keys = new Set(items.map(({ key }) => key));
    for (const [key, row] of rows) {
      if (!keys.has(key)) {
        row.remove();
        rows.delete(key);
      }
    }
    const hidden = columns.map((column) => Boolean(column.has) && !shown.some(column.has));
    heads.forEach((th, index) => (th.hidden = hidden[index]));
    let next = body.firstElementChild;
    for (const { item, key } of items) {
      const row = rows.get(key) ?? newRow(item, key);
      row.item = item;
      [...row.children].forEach((cell, index) => {
        if (cell.hidden !== hidden[index]) cell.hidden = hidden[index];
        if (!cell.hidden) fill(cell, columns[index].cell(item));
      });
      if (row === next) next = next.nextElementSibling;
      else place(row, next);
    }
    if (!body.querySelector('.open[tabindex="0"]')) inTabOrder(body.firstElementChild);
    nothing.hidden = items.length > 0;
    if (!items.length) nothing.textContent = options.empty();
  }

  // A row that is moved keeps the focus, which moving takes from it.
  function place(row, before) {
    const focused = row.contains(document.activeElement);
    body.insertBefore(row, before);
    if (focused) row.opener.focus({ preventScroll: true });
  }

  function newRow(item, key) {
    const line = element("tr");
    const cells = columns.map((column, index) => {
      const cell = element(index ? "td" : "th", [column.number && "number", column.className].filter(Boolean).join(" "));
      cell.dataset.column = column.title;
      return cell;
    });
    const opener = element("button", "open");
    opener.type = "button";
    opener.tabIndex = -1;
    opener.ariaLabel = options.label(item);
    cells[0].scope = "row";
    cells[0].append(opener);
    cells[0].into = opener;
    line.append(...cells);
    line.addEventListener("click", () => {
      // Text that was just selected must stay so, to be copied.
      if (getSelection().isCollapsed) options.open(line.item);
    });
    line.opener = opener;
    line.dataset.key = key;
    rows.set(key, line);
    return line;
  }

  return {
    /** Shows these items. */
    show(items) {
      shown = items;
      draw();
    },
    /** Sorts by another column; in the first order where there is none of this name. */
    sort(order) {
      const isColumn = columns.some((column) => column.sort && column.name === order.split(":")[0]);
      sortBy(isColumn ? order : options.order);
      draw();
    },
  };
}

function heading(column, sort) {
  const th = element("th", column.number ? "number" : undefined);
  th.scope = "col";
  if (!column.sort) {
    th.classList.add("unsorted");
    th.append(element("span", undefined, column.title));
    return th;
  }
  const button = element("button", undefined, column.title);
  button.type = "button";
  button.addEventListener("click", sort);
  th.append(button);
  return th;
}

const words = new Intl.Collator(undefined, { numeric: true });

// What is not known comes last, whichever way.
function compare(one, other, descending) {
  if (one === other) return 0;
  if (one === undefined) return 1;
  if (other === undefined) return -1;
  const order = typeof one === "number" ? one - other : words.compare(String(one), String(other));
  return descending ? -order : order;
}
