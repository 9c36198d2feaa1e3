// Elements, tables, and how numbers are formatted.

// An element with texts and elements in it; texts stay texts.
export function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// Shows rows under headings: each column is a name, a class or nothing, and what a row has there.
export function table(into, columns, rows, empty) {
  const heading = element("tr", {}, ...columns.map(([name, kind]) => element("th", { scope: "col", class: kind }, name)));
  const cells = (row) => columns.map(([, kind, of]) => {
    const content = of(row) ?? "";
    return content instanceof HTMLTableCellElement ? content : element("td", { class: kind }, content);
  });
  const lines = rows.map((row) => element("tr", {}, ...cells(row)));
  if (!lines.length) lines.push(element("tr", {}, element("td", { colspan: columns.length }, empty)));
  into.replaceChildren(element("thead", {}, heading), element("tbody", {}, ...lines));
}

// A span of time: 12.5 us, 3.1 ms, 5.2 s, 3m05s, 2h10m.
export function duration(ns) {
  if (ns < 1e3) return `${ns} ns`;
  if (ns < 999_950) return `${(ns / 1e3).toFixed(1)} us`;
  if (ns < 999_950_000) return `${(ns / 1e6).toFixed(1)} ms`;
  if (ns < 6e10) return `${(ns / 1e9).toFixed(1)} s`;
  const seconds = Math.floor(ns / 1e9);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h${two(Math.floor(seconds / 60) % 60)}m`;
}

// How long ago something was, which changes too fast to be shown in milliseconds.
export function age(ns) {
  return ns < 6e10 ? `${(ns / 1e9).toFixed(1)} s` : duration(ns);
}

// A moment in UTC, as the command line has it.
export function moment(unixMs) {
  return `${new Date(unixMs).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

// Bytes with a binary unit.
export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (count >= 1023.95 && place < units.length - 1) {
    count /= 1024;
    place += 1;
  }
  return place ? `${count.toFixed(1)} ${units[place]}` : `${count} B`;
}
