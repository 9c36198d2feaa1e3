// The table of processes.

import { beginning, bytes, duration, reason, value } from "./format.js";
import { reading, text } from "./cells.js";
import { hueOf } from "./colours.js";
import { command, container, identity, owner, place } from "./process.js";
import { usageColumns, usageFacts } from "./usage.js";

/** A row for each process and device that it holds, as `telltale smi` has them. */
export function rows(snapshot) {
  return snapshot.processes.flatMap((process, place) => {
    const held = process.devices.length ? process.devices : [undefined];
    return held.map((one) => {
      const device = one && snapshot.devices[one.device];
      return { process, held: one, device, key: `${identity(process)}@${device?.id ?? ""}#${process.identity ? "" : place}` };
    });
  });
}

function live(name) {
  return ({ held }) => {
    if (!held || held.accounting === "unknown") return undefined;
    return held.spaces.find((one) => one.space === name)?.live_bytes ?? 0;
  };
}

function peak({ held }) {
  return held?.kinds.find((kind) => kind.kind === "dram")?.peak_bytes;
}

// Why a row has no memory values: what was claimed is not trusted, or else `otherwise`.
function untold({ held }, otherwise) {
  return held?.refused ? `refused: it ${held.refused}` : otherwise;
}

function memory(bytesOf, why) {
  return (row) => {
    const known = bytesOf(row);
    return known === undefined ? text(undefined, untold(row, why)) : text(bytes(known));
  };
}

function inContainer({ process }) {
  return process.container ? { text: place(process), title: container(process).join("; ") } : text("");
}

// The name, and after it as much of the command line as there is room for, without what the name
// says already.
function name({ process }) {
  const whole = command(process);
  const [first] = whole.split(" ", 1);
  const rest = first.split("/").at(-1) === process.name ? whole.slice(first.length + 1) : whole;
  return { text: process.name, after: beginning(rest, MOST_OF_A_COMMAND), title: beginning(whole, MOST_OF_A_TITLE) };
}

// Characters of a command line in a row, and where a pointer rests on it; the details have all of it.
const MOST_OF_A_COMMAND = 160;
const MOST_OF_A_TITLE = 600;

const UNTRACKED = "it holds the device, but no source reports its memory";

function pid({ process }) {
  return { ...text(process.pid ?? undefined, "in a PID namespace that cannot be seen"), hue: hueOf(identity(process)) };
}

/** The table's columns. */
export const columns = [
  { name: "pid", title: "Pid", number: true, cell: pid, sort: ({ process }) => process.pid ?? undefined },
  { name: "user", title: "User", className: "narrow", cell: ({ process }) => reading(owner(process), String), sort: ({ process }) => value(owner(process)) },
  { name: "name", title: "Name", className: "wide", cell: name, sort: ({ process }) => process.name },
  { name: "container", title: "Container", className: "narrow", has: ({ process }) => process.container, cell: inContainer, sort: ({ process }) => process.container?.pod?.name ?? process.container?.id },
  { name: "device", title: "Device", cell: ({ device }) => text(device?.id, "no device that is listed"), sort: ({ held }) => held?.device },
  { name: "dram", title: "DRAM", number: true, cell: memory(live("dram"), UNTRACKED), sort: live("dram") },
  { name: "peak", title: "DRAM peak", number: true, cell: memory(peak, "not recorded"), sort: peak },
  { name: "l1", title: "L1", number: true, cell: memory(live("l1"), UNTRACKED), sort: live("l1") },
  { name: "buffers", title: "Buffers", number: true, cell: (row) => text(row.held?.live_buffers, untold(row, "not recorded")), sort: ({ held }) => held?.live_buffers },
  { name: "uptime", title: "Up", number: true, cell: ({ process }) => reading(process.uptime_seconds, duration), sort: ({ process }) => value(process.uptime_seconds) },
  ...usageColumns,
  { name: "state", title: "State", cell: ({ process }) => text(process.state), sort: ({ process }) => process.state },
];

/** Facts of one process beside its plots, as pairs of words. */
export function facts(process, devices) {
  const named = (held) => devices[held.device]?.id ?? held.device;
  const refused = process.devices.filter((held) => held.refused).map((held) => [`${named(held)} refused`, `it ${held.refused}`]);
  const parts = process.devices.flatMap((held) => held.kinds.map((kind) => [
    `${named(held)} ${kind.kind}`,
    `${bytes(kind.live_bytes)} live` + (kind.peak_bytes === undefined ? "" : `, ${bytes(kind.peak_bytes)} at most, ${kind.live_buffers} buffers, ${kind.allocations} allocations, ${kind.failed_allocations} failed`),
  ]));
  const metrics = process.metrics
    .filter((metric) => !metric.name.startsWith("telltale_endpoint_"))
    .map((metric) => [metric.name + labels(metric.labels), shown(metric.value)]);
  return [
    ["command", value(process.command) ?? reason(process.command)],
    ...(process.container ? [["container", container(process).join("; ")]] : []),
    ...usageFacts(process),
    ["known by", process.known_by ?? "the driver alone"],
    ...refused, ...parts, ...metrics,
  ];
}

function labels(pairs) {
  return pairs.length ? ` {${pairs.map(([name, of]) => `${name}=${of}`).join(", ")}}` : "";
}

function shown(of) {
  if ("counter" in of) return String(of.counter);
  if ("gauge" in of) return String(of.gauge);
  const count = of.histogram.counts.reduce((sum, one) => sum + one, 0);
  return count ? `${count} observations, mean ${(of.histogram.sum / count).toPrecision(3)}` : "no observations";
}
