// What one device is.

import { value } from "./format.js";
import { SENSORS, of } from "./sensors.js";

/** One memory space of a device. */
export function spaceOf(device, name) {
  return device.spaces.find((one) => one.space === name);
}

/** Bytes in use in one of its spaces; undefined when not known. */
export function used(device, name) {
  return value(spaceOf(device, name)?.used_bytes);
}

/** How large one of its spaces is; undefined when not known. */
export function capacity(device, name) {
  return value(spaceOf(device, name)?.capacity_bytes);
}

/** What a device is: the type of a Tenstorrent board, another vendor's model, else its driver. */
export function product({ board_type, model, driver }) {
  return board_type ?? model ?? driver ?? "unknown";
}

/** Those of these faults that are wrong; events are not. */
export const wrong = (faults) => (faults ?? []).filter(({ state }) => state !== "ok");

/** Whether it does not work. */
export const hasFailed = (device) => wrong(device.faults).some(({ state }) => state === "failed");

/** What is wrong with the device as a whole, in few words; empty where nothing is known to be. */
export function faults(device) {
  const known = wrong(device.faults);
  return { text: known.map(({ kind }) => kind.replaceAll("_", " ")).join(", "), title: known.map(({ detail }) => detail).join("; ") };
}

/** Its PCIe link in words, and whether it is less than the device and its slot can do; GPUs slow theirs when idle. */
export function link({ identity, telemetry }) {
  const of = (name) => value(telemetry.link?.[name]);
  const [now, most] = ["", "_max"].map((end) => [of(`pcie_generation${end}`), of(`pcie_width${end}`)]);
  if (now.includes(undefined)) return undefined;
  const words = ([generation, width]) => `${generation}.0 x${width}`;
  if (most.includes(undefined) || words(now) === words(most)) return { text: words(now), isReduced: false };
  const [isSlower, isNarrower] = [0, 1].map((place) => now[place] < most[place]);
  return { text: `${words(now)} of ${words(most)}`, isReduced: isNarrower || (isSlower && identity.class !== "gpu") };
}

/** Devices that stand together: [{ name, devices }], the trays of a Galaxy, else all in one group without a name. */
export function trays(devices) {
  const groups = new Map();
  for (const device of devices) {
    const tray = device.identity.galaxy?.tray;
    const name = tray === undefined ? "" : `T${tray}`;
    if (!groups.has(name)) groups.set(name, { name, devices: [] });
    groups.get(name).devices.push(device);
  }
  return [...groups.values()];
}

/** What a device is called within its tray. */
export function nameInTray(device) {
  return device.identity.galaxy ? device.id.split(":").at(-1) : device.id;
}

// Sensors that have a column fail, which is no lack of support or of permission.
const WRONG = ["timed_out", "gone", "resetting", "implausible"];
function hasWrongSensor({ telemetry }) {
  return SENSORS.some((sensor) => sensor.column && WRONG.includes(of(telemetry, sensor)?.absent));
}

// Nothing is in it, or it has no such memory.
function isFree({ space, used_bytes: reading }) {
  return space === "host" || value(reading) === 0 || reading.absent === "unsupported";
}

/** Whether an idle device may share a row with others of its tray, as in `telltale top` (device_rows.rs), which keeps those of alerts apart, too: nothing of it is wrong or unknown. */
export function folds(device) {
  return isIdle(device) && !link(device)?.isReduced && device.spaces.every(isFree) && !hasWrongSensor(device);
}

/** Whether no process has the device open, nothing is in its memory, and nothing is known to be wrong with it. */
export function isIdle(device) {
  return value(device.holders)?.length === 0 && !wrong(device.faults).length && !isInUse(device);
}

/** Whether a process is known to have the device open, or something to be in its memory. */
export function isInUse(device) {
  return value(device.holders)?.length > 0 || ["dram", "l1"].some((name) => used(device, name));
}
