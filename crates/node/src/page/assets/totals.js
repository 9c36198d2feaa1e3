// The machine in a few numbers: sums and extremes of what the table of devices shows.

import { bar, element, stacked } from "./cells.js";
import { bytes, digits, value } from "./format.js";
import { capacity, product, used as usedOf } from "./device.js";
import { parts } from "./holders.js";
import { hostTile } from "./usage.js";

/** Writes them into the list `into`. */
export function showTotals(into, snapshot) {
  const tiles = [
    ["Devices", String(snapshot.devices.length), boards(snapshot)],
    ["Processes", String(snapshot.processes.length + (snapshot.withheld_processes ?? 0)), holding(snapshot)],
    memory(snapshot),
    hottest(snapshot),
    power(snapshot),
    ...hostTile(snapshot),
  ];
  const shape = JSON.stringify(tiles);
  if (into.last === shape) return;
  into.last = shape;
  into.replaceChildren(...tiles.map(tile));
}

function tile([name, value, more, ratio, by]) {
  const box = element("div");
  const shown = element("dd");
  shown.append(element("b", undefined, value), " ", element("small", undefined, more));
  if (ratio !== undefined) shown.append(bar(ratio, by));
  box.append(element("dt", undefined, name), shown);
  return box;
}

function boards(snapshot) {
  const counts = new Map();
  for (const { identity } of snapshot.devices) counts.set(product(identity), (counts.get(product(identity)) ?? 0) + 1);
  return [...counts].map(([board, count]) => (counts.size === 1 ? board : `${count} ${board}`)).join(", ");
}

function holding(snapshot) {
  const held = new Set(snapshot.processes.flatMap((process) => process.devices.map((one) => one.device)));
  return snapshot.processes.length ? `on ${held.size} ${held.size === 1 ? "device" : "devices"}` : "";
}

// A sum says of how many it is where it is not of all.
function partly(known, snapshot) {
  return known === snapshot.devices.length ? "" : `, ${known} of ${snapshot.devices.length} devices`;
}

function memory(snapshot) {
  const devices = snapshot.devices.filter((device) => usedOf(device, "dram") !== undefined);
  const sum = (of) => devices.reduce((all, device) => all + (of(device, "dram") ?? 0), 0);
  const [used, whole] = [sum(usedOf), sum(capacity)];
  if (!devices.length) return ["DRAM in use", "–", "not known"];
  const by = used && whole ? stacked(parts(snapshot, devices, "dram", used), whole).parts : undefined;
  return ["DRAM in use", bytes(used), whole ? `of ${bytes(whole)}${partly(devices.length, snapshot)}` : "", whole ? Math.min(used / whole, 1) : undefined, by];
}

function hottest(snapshot) {
  const known = snapshot.devices.filter((device) => value(device.telemetry.temperature_celsius) !== undefined);
  if (!known.length) return ["Hottest", "–", "no temperature is known"];
  const degrees = (device) => value(device.telemetry.temperature_celsius);
  const device = known.reduce((one, other) => (degrees(other) > degrees(one) ? other : one));
  const limit = value(device.telemetry.temperature_limit_celsius);
  if (limit === undefined) return ["Hottest", `${digits(degrees(device))} °C`, device.id];
  return ["Hottest", digits(degrees(device)), `/ ${digits(limit)} °C ${device.id}`, Math.min(degrees(device) / limit, 1)];
}

function power(snapshot) {
  const known = snapshot.devices.map((device) => value(device.telemetry.power_watts)).filter((one) => one !== undefined);
  if (!known.length) return ["Power", "–", "not known"];
  return ["Power", `${digits(known.reduce((sum, one) => sum + one, 0))} W`, partly(known.length, snapshot).slice(2)];
}
