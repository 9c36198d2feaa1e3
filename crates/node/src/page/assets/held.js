// Who holds a device, and what a process holds: a row each, with a button that shows the other.

import { element } from "./cells.js";
import { bytes, duration, value } from "./format.js";
import { identity } from "./processes.js";

const HEADINGS = {
  device: ["Process", "User", "DRAM", "L1", "Buffers", "Up"],
  process: ["Device", "DRAM", "L1", "Buffers"],
};

// The class of a column: numbers, and what a phone has no room for.
function classOf(kind, at) {
  const name = HEADINGS[kind][at];
  const number = ["DRAM", "L1", "Buffers", "Up"].includes(name) ? "number" : "";
  return `${number} ${["L1", "Buffers"].includes(name) ? "spacious" : ""}`.trim() || undefined;
}

// Bytes that a process has in all memory of a device; undefined when not known.
function total(held) {
  if (held.accounting === "unknown") return undefined;
  return held.spaces.reduce((sum, space) => sum + space.live_bytes, 0);
}

// Some memory comes first, then an unknown amount of it, then none.
function rank(held) {
  const known = total(held);
  return known === undefined ? [1, 0] : known > 0 ? [2, known] : [0, 0];
}

/** The living processes on the device at this place, those with most memory there first, and how many more hold it. */
export function holders(snapshot, place) {
  const known = snapshot.processes
    .filter((process) => process.state !== "dead")
    .map((process) => ({ process, held: process.devices.find((held) => held.device === place) }))
    .filter(({ held }) => held)
    .sort((one, other) => {
      const [a, b] = [rank(one.held), rank(other.held)];
      return b[0] - a[0] || b[1] - a[1] || (one.process.pid ?? 0) - (other.process.pid ?? 0);
    });
  const open = known.filter(({ held }) => held.open_descriptors > 0).length;
  const listed = (value(snapshot.devices[place]?.holders) ?? []).filter((one) => one.pid != null || !one.memory_known);
  return { known, others: Math.max(listed.length - open, 0) };
}

function memory(held, space) {
  if (total(held) === undefined) return "n/a";
  return bytes(held.spaces.find((one) => one.space === space)?.live_bytes ?? 0);
}

function parts(held) {
  return [memory(held, "dram"), memory(held, "l1"), String(held.live_buffers ?? "n/a")];
}

// The rows of what is open: a key, the button's words, the other cells, and what it opens.
function rowsOf(snapshot, open, openers) {
  if (open.device) {
    const place = snapshot.devices.findIndex((device) => device.id === open.device);
    const { known, others } = holders(snapshot, place);
    const rows = known.map(({ process, held }) => {
      const up = value(process.uptime_seconds);
      const user = value(process.user) ?? value(process.uid) ?? "n/a";
      const cells = [String(user), ...parts(held), up === undefined ? "n/a" : duration(up)];
      return { key: identity(process), label: [`${process.pid ?? "hidden"} `, process.name], cells, open: () => openers.process(process) };
    });
    const one = others === 1 ? "1 more process has it open; it is not shown here." : `${others} more processes have it open; they are not shown here.`;
    const none = rows.length ? "" : "No process holds it.";
    return { kind: "device", rows, note: others ? one : none };
  }
  const process = snapshot.processes.find((one) => identity(one) === open.process);
  const rows = (process?.devices ?? []).map((held) => {
    const device = snapshot.devices[held.device];
    return { key: device?.id ?? "", label: [device?.id ?? "a device that is not listed"], cells: parts(held), open: () => device && openers.device(device) };
  });
  return { kind: "process", rows, note: "" };
}

/** Brings the list in the panel up to date; rows that stay keep the focus. */
export function showHeld(place, snapshot, open, openers) {
  const { kind, rows, note } = rowsOf(snapshot, open, openers);
  const shape = JSON.stringify([kind, open, rows.map((row) => row.key), note]);
  if (place.shape !== shape) {
    place.shape = shape;
    const table = element("table");
    table.setAttribute("aria-label", kind === "device" ? "Processes that hold it" : "Devices that it holds");
    const head = element("tr");
    head.append(...HEADINGS[kind].map((name, at) => Object.assign(element("th", classOf(kind, at), name), { scope: "col" })));
    table.append(element("thead"), element("tbody"));
    table.tHead.append(head);
    for (const row of rows) {
      const tr = table.tBodies[0].insertRow();
      const named = Object.assign(element("th"), { scope: "row" });
      const button = Object.assign(element("button", "open"), { type: "button" });
      const [first, ...names] = row.label;
      button.append(first, ...names.map((name) => element("bdi", undefined, name)));
      button.addEventListener("click", () => tr.open());
      named.append(button);
      tr.append(named, ...row.cells.map((_, at) => element("td", classOf(kind, at + 1))));
    }
    place.replaceChildren(...(rows.length ? [table] : []), ...(note ? [element("p", undefined, note)] : []));
  }
  rows.forEach((row, at) => {
    const tr = place.querySelectorAll("tbody tr")[at];
    tr.open = row.open;
    row.cells.forEach((words, cell) => {
      if (tr.cells[cell + 1].textContent !== words) tr.cells[cell + 1].textContent = words;
    });
  });
}

/** Leaves nothing behind of what was listed. */
export function clearHeld(place) {
  place.shape = undefined;
  place.replaceChildren();
}
