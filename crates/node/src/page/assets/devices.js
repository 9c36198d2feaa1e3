// The table of devices.

import { bytes, clock, digits, megahertz, reason, value } from "./format.js";
import { reading, share, space, text } from "./cells.js";
import { trend } from "./recent.js";

const celsius = (degrees) => `${digits(degrees)} °C`;
const percent = (ratio) => `${Math.round(ratio * 100)} %`;
const watts = (power) => `${digits(power)} W`;

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
  if (untracked) cell.title = "untracked: the driver says they hold the device, nobody says how much memory";
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

/** The table's columns. */
export const columns = [
  { name: "id", title: "Device", cell: (device) => text(device.id), sort: (device) => device.place },
  { name: "board", title: "Board", cell: (device) => text(product(device.identity)), sort: (device) => product(device.identity) },
  { name: "fault", title: "Fault", className: "fault", has: (device) => device.faults?.length, cell: faults, sort: (device) => faults(device).text || undefined },
  { name: "dram", title: "DRAM", number: true, cell: (device) => space(spaceOf(device, "dram")), sort: used("dram") },
  { name: "trend", title: "DRAM, 10 minutes", cell: (device) => ({ trend: trend(`device/${device.id}/dram`) }) },
  { name: "l1", title: "L1", number: true, cell: (device) => space(spaceOf(device, "l1")), sort: used("l1") },
  {
    name: "temperature", title: "Temperature", number: true,
    cell: ({ telemetry }) => share(telemetry.temperature_celsius, telemetry.temperature_limit_celsius, celsius),
    sort: ({ telemetry }) => value(telemetry.temperature_celsius),
  },
  {
    name: "power", title: "Power", number: true,
    cell: ({ telemetry }) => share(telemetry.power_watts, telemetry.power_limit_watts, watts),
    sort: ({ telemetry }) => value(telemetry.power_watts),
  },
  {
    name: "clock", title: "Clock", number: true,
    cell: ({ telemetry }) => reading(telemetry.aiclk_hertz, megahertz),
    sort: ({ telemetry }) => value(telemetry.aiclk_hertz),
  },
  {
    name: "busy", title: "Busy", number: true, has: ({ telemetry }) => telemetry.load,
    cell: ({ telemetry }) => reading(telemetry.load?.busy_ratio, percent),
    sort: ({ telemetry }) => value(telemetry.load?.busy_ratio),
  },
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
    ...readings(device).filter(([, of]) => value(of) === undefined).map(([name, of]) => [name, reason(of)]),
  ];
}

// What the table shows as a dash, so that its reason can be read without a pointer.
function readings(device) {
  return [
    ["DRAM in use", spaceOf(device, "dram")?.used_bytes],
    ["temperature", device.telemetry.temperature_celsius],
    ["power", device.telemetry.power_watts],
    ["clock", device.telemetry.aiclk_hertz],
    ...(device.telemetry.load ? [["busy", device.telemetry.load.busy_ratio]] : []),
    ["held by", device.holders],
  ];
}
