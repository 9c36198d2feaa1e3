// What this page has seen since it was opened: the last ten minutes, for plots before the history
// answers or where there is none.

import { milliseconds, value } from "./format.js";
import { spaceOf } from "./devices.js";
import { identity } from "./processes.js";

const POINTS = 600;

const DEVICE = {
  dram: (device) => value(spaceOf(device, "dram")?.used_bytes),
  l1: (device) => value(spaceOf(device, "l1")?.used_bytes),
  temperature: (device) => value(device.telemetry.temperature_celsius),
  power: (device) => value(device.telemetry.power_watts),
};

const series = new Map();

/** Takes note of a snapshot. */
export function remember(snapshot) {
  const at = milliseconds(snapshot.taken_at) / 1000;
  const seen = new Set();
  for (const device of snapshot.devices) {
    for (const [name, read] of Object.entries(DEVICE)) note(seen, `device/${device.id}/${name}`, at, read(device));
  }
  for (const process of snapshot.processes) {
    for (const held of process.devices) {
      const device = snapshot.devices[held.device]?.id;
      if (held.accounting === "unknown") continue;
      for (const name of ["dram", "l1"]) {
        const known = held.spaces.find((one) => one.space === name)?.live_bytes ?? 0;
        note(seen, `process/${identity(process)}/${device}/${name}`, at, known);
      }
    }
  }
  for (const [key, points] of series) {
    if (!seen.has(key) && at - points.at(-1)[0] > POINTS) series.delete(key);
  }
}

/** Times in seconds and values of one series. */
export function recent(key) {
  const points = series.get(key) ?? [];
  return [points.map(([at]) => at), points.map(([, known]) => known ?? null)];
}

/** The series whose name begins so. */
export function recentKeys(prefix) {
  return [...series.keys()].filter((key) => key.startsWith(prefix)).sort();
}

function note(seen, key, at, known) {
  seen.add(key);
  const points = series.get(key) ?? [];
  if (!points.length) series.set(key, points);
  points.push([at, known]);
  if (points.length > POINTS) points.shift();
}
