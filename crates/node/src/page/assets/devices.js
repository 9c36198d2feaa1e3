// The table of devices.

import { bytes, clock, reason, value, written } from "./format.js";
import { reading, share, space, text } from "./cells.js";
import { trend } from "./recent.js";
import { SENSORS, named, of } from "./sensors.js";

/** One memory space of a device. */
export function spaceOf(device, name) {
  return device.spaces.find((one) => one.space === name);
}

function used(name) {
  return (device) => value(spaceOf(device, name)?.used_bytes);
}

function holders(device) {
  const known = value(device.holders);
  if (!known) return reading(device.holders, String);
  const untracked = known.filter((holder) => !holder.memory_known).length;
  const cell = text(untracked ? `${known.length} (${untracked} untracked)` : known.length);
  if (untracked) cell.title = "untracked: the driver reports that they hold the device, no source reports how much memory";
  return cell;
}

// Names of faults, as `telltale smi` writes them.
const FAULTS = { heartbeat_stopped: "heartbeat stopped", vanished: "vanished" };

/** What is wrong with the device as a whole, in few words; empty where nothing is known to be. */
function faults(device) {
  const known = device.faults ?? [];
  return { text: known.map(({ kind }) => FAULTS[kind] ?? kind).join(", "), title: known.map(({ detail }) => detail).join("; ") };
}

/** What a device is: the type of a Tenstorrent board, another vendor's model, else its driver. */
export function product({ board_type, model, driver }) {
  return board_type ?? model ?? driver ?? "unknown";
}

// The column of a sensor; one that not all drivers tell is there where one does.
function column(sensor) {
  const limit = named(sensor.limit);
  return {
    name: sensor.name, title: sensor.title, number: true,
    has: sensor.part && (({ telemetry }) => telemetry[sensor.part]),
    cell: ({ telemetry }) => {
      const show = written(sensor.unit);
      return limit ? share(of(telemetry, sensor), of(telemetry, limit), show) : reading(of(telemetry, sensor), show);
    },
    sort: ({ telemetry }) => value(of(telemetry, sensor)),
  };
}

/** The table's columns. */
export const columns = [
  { name: "id", title: "Device", cell: (device) => text(device.id), sort: (device) => device.place },
  { name: "board", title: "Board", cell: (device) => text(product(device.identity)), sort: (device) => product(device.identity) },
  { name: "fault", title: "Fault", className: "fault", has: (device) => device.faults?.length, cell: faults, sort: (device) => faults(device).text || undefined },
  { name: "dram", title: "DRAM", number: true, cell: (device) => space(spaceOf(device, "dram")), sort: used("dram") },
  { name: "trend", title: "DRAM, 10 minutes", cell: (device) => ({ trend: trend(`device/${device.id}/dram`) }) },
  { name: "l1", title: "L1", number: true, cell: (device) => space(spaceOf(device, "l1")), sort: used("l1") },
  ...SENSORS.filter((sensor) => sensor.column).map(column),
  { name: "holders", title: "Held by", number: true, cell: holders, sort: (device) => value(device.holders)?.length },
];

/** Facts of one device beside its plots, as pairs of words. */
export function facts(device) {
  const known = value(device.facts);
  const parts = device.kinds.map((kind) => [
    `${kind.kind}`,
    `${bytes(kind.total_bytes)} = processes ${bytes(kind.processes_bytes)} + unattributed ${bytes(kind.unattributed_bytes)} + ghost ${bytes(kind.ghost_bytes)}`,
  ]);
  return [
    ...(device.faults ?? []).map((fault) => ["fault", `${fault.detail} (since ${clock(fault.since)})`]),
    ["board", product(device.identity)],
    ["PCI address", device.identity.pci ?? (device.identity.vendor ? "none" : "none: it is reached through another chip")],
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
  return SENSORS.flatMap((sensor) => {
    const found = of(telemetry, sensor);
    const known = value(found);
    if (known !== undefined) return [[sensor.title.toLowerCase(), written(sensor.unit)(known)]];
    return found && sensor.column ? [[sensor.title.toLowerCase(), reason(found)]] : [];
  });
}

function absences(device) {
  const all = [["DRAM in use", spaceOf(device, "dram")?.used_bytes], ["held by", device.holders]];
  return all.filter(([, found]) => value(found) === undefined).map(([name, found]) => [name, reason(found)]);
}
