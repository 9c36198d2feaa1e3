// The page: takes snapshots from the stream, shows them, and opens details. Everything shown is in
// the snapshot; nothing is computed here but its presentation.

import { clock, duration } from "./format.js";
import { address } from "./address.js";
import { colour } from "./colours.js";
import { collapses, columns as deviceColumns, rows as deviceRows } from "./devices.js";
import { map } from "./map.js";
import { theme } from "./theme.js";
import { columns as processColumns, rows as processRows } from "./processes.js";
import { sortedTable } from "./table.js";
import { follow } from "./stream.js";
import { keys } from "./keys.js";
import { recall, remember } from "./recent.js";
import { recentPast } from "./history.js";
import { panel } from "./panel.js";
import { access } from "./access.js";
import { queryBox } from "./filter.js";
import { fold, showAlerts, showSources } from "./health.js";
import { showTotals } from "./totals.js";

// Seconds without a snapshot after which the values are shown as old.
const OLD = 10;

const at = (id) => document.getElementById(id);
let latest;
let arrived;
let lastSequence;
let paused = false;

const place = address();
const reader = access(() => {
  filter.forget();
  filter.ask();
  stream.restart();
});
const filter = queryBox(reader.token, place, () => {
  draw();
  if (paused) connection("paused", "paused", asOf());
});
const details = panel(() => latest, reader.token, place);
const devices = sortedTable(at("devices"), deviceColumns, {
  key: (row) => row.id,
  order: "id",
  ordered: (order) => place.set({ devices: order === "id" ? "" : order }),
  open: (row) => (row.devices ? showIdle(true) : details.device(row)),
  label: (row) => (row.devices ? `${row.id}, show a row for each` : `Device ${row.id}, details`),
  empty: () => (filter.rows() ? "No device matches the filter." : "No device: none is listed by a driver, a ledger or a region."),
});
const processes = sortedTable(at("processes"), processColumns, {
  key: (row) => row.key,
  order: "dram:desc",
  ordered: (order) => place.set({ processes: order === "dram:desc" ? "" : order }),
  open: (row) => details.process(row.process),
  label: (row) => `Process ${row.process.pid ?? "without a visible pid"}, details`,
  empty: () => (filter.rows() ? "No process matches the filter." : latest?.withheld_processes ? "None that you may see." : "No process holds a device."),
});
const chart = map((device) => details.device(device), (metric) => place.set({ map: metric }));
theme(place, () => details.redraw());
place.bind("devices", devices.sort);
place.bind("processes", processes.sort);
place.bind("map", chart.choose);
place.bind("idle", draw);

function showIdle(all) {
  place.set({ idle: all ? "shown" : "" });
  draw();
}

function draw() {
  if (!latest) return;
  const shown = filter.rows() ?? latest;
  const all = place.get("idle") === "shown";
  devices.show(deviceRows(latest, shown, all));
  at("idle-button").hidden = !collapses(shown.devices);
  at("idle-button").ariaPressed = String(all);
  chart.show(latest, shown.devices);
  processes.show(processRows(shown));
  at("device-count").textContent = count(shown.devices.length, shown.left_out?.devices);
  const known = count(shown.processes.length, shown.left_out?.processes);
  at("process-count").textContent = latest.withheld_processes ? `${known}, and ${latest.withheld_processes} not shown` : known;
  reader.show(latest);
  showTotals(at("totals"), latest);
  showSources(latest);
  showAlerts(latest.alerts, latest.withheld_alerts);
  details.refresh();
}

function count(shown, leftOut) {
  return leftOut ? `${shown} of ${shown + leftOut}` : `${shown}`;
}

// The rows of a filter are the service's, and those of the newest snapshot are drawn when they come.
function redraw() {
  if (filter.isOn()) filter.ask();
  else draw();
}

// The state alone is read out when it changes; the time beside it changes each second.
function connection(state, words, time = "") {
  at("connection").dataset.state = state;
  if (at("connection-state").textContent !== words) at("connection-state").textContent = words;
  at("connection-time").textContent = time;
}

const asOf = () => (latest ? `, as of ${clock((filter.rows() ?? latest).taken_at)}` : "");

const stream = follow(() => `api/v1/stream${document.hidden ? "" : "?usage=true"}`, reader.token, {
  snapshot(snapshot, sequence) {
    remember(snapshot);
    if (arrived === undefined && snapshot.reader.has_history) recentPast(reader.token()).then((past) => past && recall(past.seconds, past.series));
    const skipped = lastSequence === undefined ? 0 : Math.max(sequence - lastSequence - 1, 0) || 0;
    lastSequence = sequence;
    arrived = performance.now();
    if (paused) return;
    latest = snapshot;
    colour(snapshot);
    // Hidden parts are not drawn until they are shown.
    if (!document.hidden) redraw();
    connection("live", skipped ? `live, but ${skipped} skipped` : "live", asOf());
  },
  lost(words, refused) {
    lastSequence = undefined;
    if (refused) reader.refused();
    if (!paused) connection("lost", words, asOf());
  },
});

// A stream that is silent is said to be old before it is given up. The clock of this machine
// counts, since the service's may be another.
setInterval(() => {
  if (!latest || paused || at("connection").dataset.state !== "live") return;
  const age = (performance.now() - arrived) / 1000;
  if (age > OLD) connection("lost", "no news", ` for ${duration(age)}${asOf()}`);
}, 1000);

function pause() {
  paused = !paused;
  at("pause").ariaPressed = String(paused);
  if (paused) connection("paused", "paused", asOf());
  else connection("waiting", "going on", asOf());
}

// On a narrow screen processes come first, for the eye and for the order of Tab alike.
const narrow = matchMedia("(max-width: 44rem)");
function arrange() {
  const [first, second] = narrow.matches ? [at("tables"), at("map-section")] : [at("map-section"), at("tables")];
  if (first.nextElementSibling !== second) first.after(second);
}
narrow.addEventListener("change", arrange);
arrange();

// While it is hidden, the service need not read what processes use.
document.addEventListener("visibilitychange", () => {
  stream.restart();
  if (!document.hidden) redraw();
});
at("sources-details").addEventListener("toggle", draw);
at("alert-fold").addEventListener("click", fold);
at("pause").addEventListener("click", pause);
at("idle-button").addEventListener("click", () => showIdle(place.get("idle") !== "shown"));
at("help-button").addEventListener("click", () => at("help").showModal());
at("help-close").addEventListener("click", () => at("help").close());
keys({ "/": () => at("filter").focus(), p: pause, "?": () => at("help").showModal() });
