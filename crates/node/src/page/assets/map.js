// The devices as they stand in the machine, tray by tray: who holds them, or one metric as a heat map.

import { bar, element, level, stacked } from "./cells.js";
import { capacity, faults, hasFailed, isIdle, isInUse, nameInTray, trays, used } from "./device.js";
import { bytes, value, written } from "./format.js";
import { holders, parts } from "./holders.js";
import { SENSORS, named, of } from "./sensors.js";

const at = (id) => document.getElementById(id);

// What the map can show: the memory by process, or a sensor against its limit, or where it has none against the
// largest of them all.
const METRICS = [
  ...["dram", "l1"].map((space) => ({
    name: space, title: `${space.toUpperCase()} by process`, space, show: bytes,
    read: (device) => used(device, space), limit: (device) => capacity(device, space),
  })),
  ...SENSORS.filter((sensor) => sensor.column || sensor.graph).map((sensor) => ({
    name: sensor.name, title: sensor.title, show: written(sensor.unit),
    read: ({ telemetry }) => value(of(telemetry, sensor)),
    limit: ({ telemetry }) => (sensor.unit === "ratio" ? 1 : sensor.limit && value(of(telemetry, named(sensor.limit)))),
  })),
];

/** `open(device)` shows a device's details, `chosen(name)` is called when another metric is. Returns { show(snapshot, wanted), choose(name) }. */
export function map(open, chosen) {
  const select = at("map-metric");
  let shown;
  select.append(...METRICS.map(({ name, title }) => new Option(title, name)));
  select.addEventListener("change", () => {
    chosen(select.value === METRICS[0].name ? "" : select.value);
    if (shown) show(...shown);
  });

  // All devices are shown, and those that a filter does not want are pale.
  function show(snapshot, wanted) {
    shown = [snapshot, wanted];
    const { devices } = snapshot;
    const ids = new Set(wanted.map(({ id }) => id));
    // A single device is all in its row.
    at("map-section").hidden = devices.length < 2;
    const present = METRICS.filter((metric) => metric.space || devices.some((device) => metric.read(device) !== undefined));
    for (const option of select.options) option.hidden = !present.some(({ name }) => name === option.value);
    const metric = METRICS.find(({ name }) => name === select.value);
    const largest = Math.max(...devices.map((device) => metric.read(device) ?? 0));
    at("map-scale").textContent = scale(metric, devices, largest);
    const groups = trays(devices);
    const shape = JSON.stringify(groups.map(({ name, devices: those }) => [name, those.map(({ id }) => id)]));
    if (at("map").shape !== shape) {
      at("map").shape = shape;
      at("map").replaceChildren(...groups.map(group));
      inTabOrder(at("map").querySelector(".tile"));
    }
    at("map").querySelectorAll(".group").forEach((box, place) => {
      const inUse = groups[place].devices.filter(isInUse).length;
      box.querySelector("h3 span").textContent = `${inUse} of ${groups[place].devices.length} in use`;
      box.querySelectorAll(".tile").forEach((tile, index) => {
        const device = groups[place].devices[index];
        tile.classList.toggle("unwanted", !ids.has(device.id));
        paint(tile, snapshot, device, metric, largest);
      });
    });
  }

  // One tile is in the order of Tab; the arrows go from tile to tile.
  function inTabOrder(tile) {
    for (const other of at("map").querySelectorAll('.tile[tabindex="0"]')) other.tabIndex = -1;
    if (tile) tile.tabIndex = 0;
  }

  at("map").addEventListener("focusin", (event) => inTabOrder(event.target));
  at("map").addEventListener("keydown", (event) => {
    const to = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const tiles = [...at("map").querySelectorAll(".tile")];
    tiles[Math.min(Math.max(tiles.indexOf(event.target) + to, 0), tiles.length - 1)].focus();
  });

  function group({ name, devices }) {
    const box = element("section", "group");
    const title = element("h3", undefined, name || "Devices");
    title.append(" ", element("span", "count"));
    const tiles = element("div", "tiles");
    tiles.style.setProperty("--name", `${Math.max(...devices.map((device) => nameInTray(device).length))}ch`);
    tiles.append(...devices.map((device) => {
      const tile = element("button", "tile");
      tile.type = "button";
      tile.tabIndex = -1;
      tile.addEventListener("click", () => open(tile.device));
      tile.append(element("span", "name", nameInTray(device)), element("span", "value"), bar(0));
      return tile;
    }));
    box.append(title, tiles);
    return box;
  }

  return {
    show,
    /** Shows this metric; the first one where there is none of this name. */
    choose(name) {
      select.value = METRICS.some((metric) => metric.name === name) ? name : METRICS[0].name;
      if (shown) show(...shown);
    },
  };
}

// What the whole of a bar stands for.
function scale({ show, limit, space }, devices, largest) {
  const limits = new Set(devices.map(limit));
  if (limits.size === 1 && !limits.has(undefined) && !limits.has(null)) return `a full bar is ${show([...limits][0])}`;
  if (space || ![...limits].some((one) => one === undefined || one === null)) return "a full bar is the device's own limit";
  return `a full bar is ${show(largest)}, the largest of them`;
}

function paint(tile, snapshot, device, metric, largest) {
  tile.device = device;
  const known = metric.read(device);
  const whole = metric.limit(device) ?? largest;
  const ratio = known === undefined || !whole ? 0 : Math.min(known / whole, 1);
  const { known: processes, others } = holders(snapshot, device);
  const count = processes.length + others;
  const held = count ? `held by ${count} ${count === 1 ? "process" : "processes"}` : "held by no process";
  const wrong = faults(device).text;
  const words = known === undefined ? "not known" : metric.show(known);
  const by = metric.space && known ? stacked(parts(snapshot, [device], metric.space, known), whole) : {};
  const last = JSON.stringify([words, ratio, by.parts, held, wrong, metric.name]);
  if (tile.last === last) return;
  tile.last = last;
  tile.classList.toggle("idle", isIdle(device));
  tile.classList.toggle("faulty", Boolean(wrong));
  tile.dataset.heat = metric.space ? "" : level(ratio);
  tile.style.setProperty("--heat", metric.space ? "0%" : `${Math.round(ratio * 45)}%`);
  // What does not work has no value that means something.
  tile.querySelector(".value").textContent = hasFailed(device) ? wrong : words;
  tile.lastElementChild.replaceWith(bar(ratio, by.parts));
  tile.ariaLabel = [device.id, `${metric.title} ${words}`, held, wrong].filter(Boolean).join(", ");
  tile.title = [device.id, held, by.title].filter(Boolean).join("; ");
}
