// What this page has seen since it was opened: the last ten minutes, for curves in rows, and for
// plots where the history does not answer. Of a fixed size, whatever the machine does.

import { milliseconds, value } from "./format.js";
import { used } from "./device.js";
import { identity } from "./process.js";
import { SENSORS, of } from "./sensors.js";

// Moments that are kept, and series; a series takes 4.7 KiB.
const MOMENTS = 600;
const MOST_SERIES = 8192;
// Points of a curve in a row.
const CURVE = 60;
const CURVE_SECONDS = 600;

const DEVICE = [
  ...["dram", "l1"].map((name) => [name, (device) => used(device, name)]),
  ...SENSORS.filter((sensor) => sensor.graph).map((sensor) => [sensor.name, ({ telemetry }) => value(of(telemetry, sensor))]),
];

// Seconds of each moment, in a ring that all series share; NaN stands for nothing in both.
const times = new Float64Array(MOMENTS).fill(NaN);
const series = new Map();
let next = 0;
let past = { seconds: [], series: new Map() };

/** Takes note of a snapshot. */
export function remember(snapshot) {
  const place = begin(milliseconds(snapshot.taken_at) / 1000);
  for (const device of snapshot.devices) {
    for (const [name, read] of DEVICE) note(`device/${device.id}/${name}`, place, read(device));
  }
  for (const process of snapshot.processes) {
    for (const held of process.devices) {
      if (held.accounting === "unknown") continue;
      const device = snapshot.devices[held.device]?.id;
      for (const name of ["dram", "l1"]) {
        const known = held.spaces.find((one) => one.space === name)?.live_bytes ?? 0;
        note(`process/${identity(process)}/${device}/${name}`, place, known);
      }
    }
  }
}

/** Keeps what was before this page was opened, for curves alone: values of each series at `seconds`. */
export function recall(seconds, all) {
  past = { seconds, series: new Map(all) };
}

/** Times in seconds and values of one series, from the oldest on. */
export function recent(name) {
  const { values } = series.get(name) ?? {};
  const found = [[], []];
  for (let age = MOMENTS; age > 0 && values; age -= 1) {
    const place = (next + MOMENTS - age) % MOMENTS;
    if (Number.isNaN(times[place])) continue;
    found[0].push(times[place]);
    found[1].push(Number.isNaN(values[place]) ? null : values[place]);
  }
  return found;
}

/** The newest value of one series; undefined where there was none in the last snapshot. */
export function latest(name) {
  const known = series.get(name)?.values[(next + MOMENTS - 1) % MOMENTS];
  return known === undefined || Number.isNaN(known) ? undefined : known;
}

/** The series whose name begins so. */
export function recentKeys(prefix) {
  return [...series.keys()].filter((name) => name.startsWith(prefix)).sort();
}

/**
 * The curve of a series over ten minutes, as a path in a box of 100 by 20 that is as high as `whole`, or
 * where that is not known as the series' largest value; empty where there is nothing.
 */
export function trend(name, whole) {
  const now = times[(next + MOMENTS - 1) % MOMENTS];
  const highest = new Array(CURVE).fill(undefined);
  let most = 0;
  const add = (values, at) => values?.forEach((known, place) => {
    const column = CURVE - 1 - Math.floor(((now - at[place]) / CURVE_SECONDS) * CURVE);
    if (!(column >= 0 && column < CURVE) || known === null || Number.isNaN(known)) return;
    highest[column] = Math.max(highest[column] ?? 0, known);
    most = Math.max(most, known);
  });
  add(series.get(name)?.values, times);
  add(past.series.get(name), past.seconds);
  const top = whole || most;
  const points = highest.flatMap((one, column) => (one === undefined ? [] : [[(column * 100) / (CURVE - 1), 19 - (top && Math.min(one / top, 1) * 18)]]));
  return points.length < 2 ? "" : `M${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}`;
}

// The place of a new moment. What was there is forgotten, and so is a series that has nothing else.
function begin(at) {
  const place = next % MOMENTS;
  next += 1;
  times[place] = at;
  for (const [name, one] of series) {
    one.values[place] = NaN;
    if (next - one.newest >= MOMENTS) series.delete(name);
  }
  return place;
}

function note(name, place, known) {
  let one = series.get(name);
  if (!one) {
    if (known === undefined || series.size >= MOST_SERIES) return;
    one = { values: new Float64Array(MOMENTS).fill(NaN), newest: next };
    series.set(name, one);
  }
  if (known === undefined) return;
  one.values[place] = known;
  one.newest = next;
}
