// The table of devices.

import { bytes, clock, reason, value, written } from "./format.js";
import { reading, share, space, text } from "./cells.js";
import { hueOf } from "./colours.js";
import { capacity, faults, folds, link, product, spaceOf, trays, used, wrong } from "./device.js";
import { holders, parts } from "./holders.js";
import { identity, named as namedProcess } from "./process.js";
import { trend } from "./recent.js";
import { SENSORS, named, of } from "./sensors.js";

/** A space of a device, stacked by process. */
export function stack(snapshot, device, name) {
  const known = used(device, name);
  return space(spaceOf(device, name), known ? parts(snapshot, [device], name, known) : []);
}

// The process with most memory there, and how many more.
function heldBy(device) {
  const { known, others } = holders(device.snapshot, device);
  if (!known.length && !value(device.holders)) return reading(device.holders, String);
  const title = [...known.map(({ process }) => namedProcess(process)), ...(others ? [`${others} not shown`] : [])].join("; ");
  if (!known.length) return { ...text(others ? `${others} not shown` : "no process"), absent: !others, title };
  const more = known.length - 1 + others;
  const [{ process }] = known;
  return { text: namedProcess(process), after: more ? `+${more}` : undefined, hue: hueOf(identity(process)), title };
}

// The column of a sensor; one that not all drivers tell is there where one does.
function column(sensor) {
  const limit = named(sensor.limit);
  return {
    name: sensor.name, title: sensor.title, number: true,
    idle: ({ devices }) => {
      const known = devices.map(({ telemetry }) => value(of(telemetry, sensor))).filter((one) => one !== undefined);
      return known.length ? text(`max ${written(sensor.unit)(Math.max(...known))}`) : text("");
    },
    has: sensor.part && (({ telemetry }) => telemetry[sensor.part]),
    cell: ({ telemetry }) => {
      const show = written(sensor.unit);
      return limit ? share(of(telemetry, sensor), of(telemetry, limit), show) : reading(of(telemetry, sensor), show);
    },
    sort: ({ telemetry }) => value(of(telemetry, sensor)),
  };
}

// The columns, with what they show of devices that are idle together. Boards that are all of one kind are in the totals.
const COLUMNS = [
  { name: "id", title: "Device", cell: (device) => text(device.id), idle: ({ id }) => text(id), sort: (device) => device.place },
  { name: "board", title: "Board", has: ({ snapshot }) => snapshot.devices.some(({ identity }) => product(identity) !== product(snapshot.devices[0].identity)), cell: (device) => text(product(device.identity)), idle: ({ devices }) => text([...new Set(devices.map((one) => product(one.identity)))].join(", ")), sort: (device) => product(device.identity) },
  { name: "fault", title: "Fault", className: "fault", has: (device) => wrong(device.faults).length, cell: faults, sort: (device) => faults(device).text || undefined },
  { name: "link", title: "PCIe link", className: "fault", has: (device) => link(device)?.isReduced, cell: (device) => ({ text: link(device)?.isReduced ? link(device).text : "" }), sort: (device) => link(device)?.text },
  { name: "dram", title: "DRAM", number: true, cell: (device) => stack(device.snapshot, device, "dram"), idle: sumOf("dram"), sort: (device) => used(device, "dram") },
  { name: "trend", title: "DRAM, 10 minutes", cell: (device) => ({ trend: trend(`device/${device.id}/dram`, capacity(device, "dram")) }) },
  { name: "l1", title: "L1", number: true, cell: (device) => stack(device.snapshot, device, "l1"), idle: sumOf("l1"), sort: (device) => used(device, "l1") },
  ...SENSORS.filter((sensor) => sensor.column).map(column),
  { name: "holders", title: "Held by", className: "holder", cell: heldBy, idle: () => ({ ...text("no process"), absent: true }), sort: (device) => value(device.holders)?.length },
];

/** The table's columns. */
export const columns = COLUMNS.map(({ cell, idle, sort, has, ...column }) => ({
  ...column,
  cell: (row) => (row.devices ? (idle?.(row) ?? text("")) : cell(row)),
  has: has && ((row) => !row.devices && has(row)),
  // Idle devices stand after the others of their tray, and last in every other order.
  sort: sort && ((row) => (row.devices && column.name !== "id" ? undefined : sort(row))),
}));

// The same of idle devices together: nothing is in use, of all that they have.
function sumOf(name) {
  return ({ devices }) => {
    const whole = devices.map((device) => capacity(device, name));
    return whole.includes(undefined) ? text("") : text(`0 B / ${bytes(whole.reduce((sum, one) => sum + one, 0))}`);
  };
}

/**
 * The table's rows: a device each, but those that are idle in one row for their tray, unless `all` is
 * set or the machine is so small that a row for each is as short.
 */
export function rows(snapshot, shown, all) {
  const placed = shown.devices.map((device, place) => ({ ...device, place, snapshot }));
  if (all || !collapses(shown.devices)) return placed;
  return trays(placed).flatMap(({ name, devices }) => {
    const idle = devices.filter(folds);
    if (idle.length < 2) return devices;
    const id = [name && `${name}: `, `${idle.length} idle`].join("");
    return [...devices.filter((device) => !folds(device)), { id, devices: idle, place: devices.at(-1).place + 0.5 }];
  });
}

/** Whether idle devices of these have a row together, unless all are wanted. */
export function collapses(devices) {
  return devices.length > MOST_ROWS && trays(devices).some((tray) => tray.devices.filter(folds).length > 1);
}

// Devices up to which each has a row.
const MOST_ROWS = 8;

/** Facts of one device beside its plots, as pairs of words. */
export function facts(device) {
  const known = value(device.facts);
  const node = value(device.telemetry.link?.numa_node);
  const parts = device.kinds.map((kind) => [
    `${kind.kind}`,
    `${bytes(kind.total_bytes)} = processes ${bytes(kind.processes_bytes)} + unattributed ${bytes(kind.unattributed_bytes)} + ghost ${bytes(kind.ghost_bytes)}`,
  ]);
  return [
    ...(device.faults ?? []).map(({ state, detail, since, ends }) => [state === "ok" ? "event" : "fault", `${detail} (since ${clock(since)}, until ${ends})`]),
    ["board", product(device.identity)],
    ["PCI address", device.identity.pci ?? (device.identity.vendor ? "none" : "none: it is reached through another chip")],
    ...(link(device) ? [["PCIe link", link(device).text]] : []),
    ...(node === undefined ? [] : [["NUMA node", `${node}`]]),
    ["architecture", known?.architecture ?? "not known"],
    ["worker cores", known?.worker_cores ?? "not known"],
    ["firmware", Object.entries(device.telemetry.firmware).map(([name, version]) => `${name} ${version}`).join(", ") || "not known"],
    ...parts,
    ...sensors(device),
    ...absences(device),
  ];
}

// What the sensors say. A sensor that says nothing has a line where the table has a dash, with its reason, which can
// so be read without a pointer.
function sensors({ telemetry }) {
  return SENSORS.filter(({ field }) => field !== "numa_node").flatMap((sensor) => {
    const found = of(telemetry, sensor);
    const known = value(found);
    if (known !== undefined) return [[inText(sensor.title), written(sensor.unit)(known)]];
    return found && sensor.column ? [[inText(sensor.title), reason(found)]] : [];
  });
}

// A title within a text: abbreviations stay as they are.
function inText(title) {
  return /^[A-Z][a-z]/.test(title) ? title[0].toLowerCase() + title.slice(1) : title;
}

function absences(device) {
  const all = [["DRAM in use", spaceOf(device, "dram")?.used_bytes], ["held by", device.holders]];
  return all.filter(([, found]) => value(found) === undefined).map(([name, found]) => [name, reason(found)]);
}
