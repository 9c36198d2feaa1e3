// Who holds a device, and what a process holds: a row each, with a button that shows the other.

import { element, swatch } from "./cells.js";
import { hueOf } from "./colours.js";
import { bytes, clock, duration, value } from "./format.js";
import { heldBytes, holders } from "./holders.js";
import { command, identity, owner, place } from "./process.js";

const UNKNOWN = "n/a";

// What a process has on a device, a column for each kind of memory that one of the rows has.
function kindColumns(all) {
  const kinds = [...new Set(all.flatMap((held) => held.kinds.map(({ kind }) => kind)))];
  return kinds.map((kind, place) => ({
    title: kind.replace(/^(dram|l1|cb)/, (name) => name.toUpperCase()).replaceAll("_", " "),
    className: place ? "number spacious" : "number",
    show(held) {
      if (heldBytes(held) === undefined) return [UNKNOWN];
      const found = held.kinds.find((one) => one.kind === kind);
      if (!found) return [bytes(0)];
      return [bytes(found.live_bytes), found.peak_bytes === undefined ? "" : `peak ${bytes(found.peak_bytes)}`];
    },
  }));
}

function since(process) {
  const up = process.uptime_seconds;
  if (value(up) !== undefined) return [clock(up.at - value(up) * 1e9), duration(value(up))];
  // What records nothing has a start all the same.
  return process.started_at === undefined ? [UNKNOWN] : [clock(process.started_at), "its start"];
}

// The rows of a device: a process each, with everything that tells it from others.
function ofDevice(snapshot, device, openers) {
  const { known, others } = holders(snapshot, device);
  const kinds = kindColumns(known.map(({ held }) => held));
  const inContainer = known.some(({ process }) => process.container);
  const columns = [
    { title: "User", show: (_, process) => [String(value(owner(process)) ?? UNKNOWN)] },
    ...kinds,
    { title: "Buffers", className: "number spacious", show: (held) => [String(held.live_buffers ?? UNKNOWN)] },
    { title: "Since", className: "number", show: (_, process) => since(process) },
    ...(inContainer ? [{ title: "Container", className: "spacious", show: (_, process) => [place(process) || "none"] }] : []),
    { title: "Command", className: "wide spacious", show: (_, process) => [command(process)] },
  ];
  const rows = known.map(({ process, held }) => ({
    key: identity(process), hue: hueOf(identity(process)),
    label: [`${process.pid ?? "hidden"} `, process.name],
    cells: columns.map((column) => column.show(held, process)),
    open: () => openers.process(process),
  }));
  const one = others === 1 ? "1 more process has it open; it is not shown here." : `${others} more processes have it open; they are not shown here.`;
  return { name: "Processes that hold it", first: "Process", columns, rows, note: others ? one : rows.length ? "" : "No process holds it." };
}

// The rows of a process: a device each.
function ofProcess(snapshot, process, openers) {
  const columns = [
    ...kindColumns(process.devices),
    { title: "Buffers", className: "number spacious", show: (held) => [String(held.live_buffers ?? UNKNOWN)] },
  ];
  const rows = process.devices.map((held) => {
    const device = snapshot.devices[held.device];
    return {
      key: device?.id ?? "", label: [device?.id ?? "a device that is not listed"],
      cells: columns.map((column) => column.show(held)),
      open: () => device && openers.device(device),
    };
  });
  return { name: "Devices that it holds", first: "Device", columns, rows, note: rows.length ? "" : "It holds no device." };
}

function tableOf({ name, first, columns, rows }) {
  const table = element("table");
  table.setAttribute("aria-label", name);
  table.append(element("thead"), element("tbody"));
  const head = table.createTHead().insertRow();
  const headings = [{ title: first }, ...columns];
  head.append(...headings.map(({ title, className }) => Object.assign(element("th", className, title), { scope: "col" })));
  for (const row of rows) {
    const tr = table.tBodies[0].insertRow();
    const named = Object.assign(element("th"), { scope: "row" });
    const button = Object.assign(element("button", "open"), { type: "button" });
    const [start, ...names] = row.label;
    if (row.hue) named.append(swatch(row.hue));
    button.append(start, ...names.map((one) => element("bdi", undefined, one)));
    button.addEventListener("click", () => tr.open());
    named.append(button);
    tr.append(named, ...columns.map(({ className }) => element("td", className)));
  }
  return table;
}

/** Brings the list in the panel up to date: who holds a device, or what a process holds. Rows that stay keep the focus. */
export function showHeld(into, snapshot, shown, { device }, openers) {
  const list = device ? ofDevice(snapshot, shown, openers) : ofProcess(snapshot, shown, openers);
  const shape = JSON.stringify([list.name, list.note, list.columns.map(({ title }) => title), list.rows.map(({ key, hue, label }) => [key, hue, label])]);
  if (into.shape !== shape) {
    into.shape = shape;
    into.replaceChildren(...(list.rows.length ? [tableOf(list)] : []), ...(list.note ? [element("p", "notice", list.note)] : []));
  }
  const lines = into.querySelectorAll("tbody tr");
  list.rows.forEach((row, at) => {
    lines[at].open = row.open;
    row.cells.forEach(([words, more], cell) => {
      const td = lines[at].cells[cell + 1];
      const now = more ? `${words}\n${more}` : words;
      if (td.now === now) return;
      td.now = now;
      td.replaceChildren(element("bdi", undefined, words), ...(more ? [element("small", undefined, more)] : []));
    });
  });
}

/** Leaves nothing behind of what was listed. */
export function clearHeld(into) {
  into.shape = undefined;
  into.replaceChildren();
}
