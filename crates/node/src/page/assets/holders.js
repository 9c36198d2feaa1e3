// Who holds which device: the processes on it, and the parts of its memory that are theirs.

import { value } from "./format.js";
import { hueOf } from "./colours.js";
import { identity, named } from "./process.js";

// Processes that have a part of their own in a bar; the others share one.
const MOST_PARTS = 10;

// Processes by the id of their device, once for each snapshot.
const indexes = new WeakMap();

function index(snapshot) {
  if (indexes.has(snapshot)) return indexes.get(snapshot);
  const found = new Map();
  for (const process of snapshot.processes) {
    if (process.state === "dead") continue;
    for (const held of process.devices) {
      const id = snapshot.devices[held.device]?.id;
      if (!found.has(id)) found.set(id, []);
      found.get(id).push({ process, held });
    }
  }
  indexes.set(snapshot, found);
  return found;
}

/** Bytes that a process has in one space of a device, or in all of them; undefined when not known. */
export function heldBytes(held, space) {
  if (held.accounting === "unknown") return undefined;
  return held.spaces.filter((one) => !space || one.space === space).reduce((sum, one) => sum + one.live_bytes, 0);
}

// Some memory comes first, then an unknown amount of it, then none.
function rank(held) {
  const known = heldBytes(held);
  return known === undefined ? [1, 0] : known > 0 ? [2, known] : [0, 0];
}

/** The living processes on a device, those with most memory there first, and how many more hold it. */
export function holders(snapshot, device) {
  const known = [...(index(snapshot).get(device.id) ?? [])].sort((one, other) => {
    const [a, b] = [rank(one.held), rank(other.held)];
    return b[0] - a[0] || b[1] - a[1] || (one.process.pid ?? 0) - (other.process.pid ?? 0);
  });
  const open = known.filter(({ held }) => held.open_descriptors > 0).length;
  const listed = (value(device.holders) ?? []).filter((one) => one.pid != null || !one.memory_known);
  return { known, others: Math.max(listed.length - open, 0) };
}

/**
 * What is in use of some devices' memory, by process: [{ hue, bytes, name }], in the order in which the
 * processes were started, so that parts stay where they are. What no process accounts for comes last.
 */
export function parts(snapshot, devices, space, used) {
  const sums = new Map();
  for (const { process, held } of devices.flatMap((device) => index(snapshot).get(device.id) ?? [])) {
    const bytes = heldBytes(held, space);
    if (!bytes) continue;
    const key = identity(process);
    const sum = sums.get(key) ?? { hue: hueOf(key), name: named(process), started: process.identity?.start_time_ticks ?? 0, bytes: 0 };
    sums.set(key, { ...sum, bytes: sum.bytes + bytes });
  }
  const largest = [...sums.values()].sort((one, other) => other.bytes - one.bytes).slice(0, MOST_PARTS);
  const found = largest.sort((one, other) => one.started - other.started || (one.name < other.name ? -1 : 1));
  const rest = used - found.reduce((sum, one) => sum + one.bytes, 0);
  return rest > 0 ? [...found, { hue: "hue-other", name: "others", bytes: rest }] : found;
}
