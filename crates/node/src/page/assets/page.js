// The page: takes snapshots from the stream, shows them, and opens details. Everything shown is in
// the snapshot; nothing is computed here but its presentation.

import { bytes, clock, duration, milliseconds, value } from "./format.js";
import { element } from "./cells.js";
import { columns as deviceColumns, spaceOf, words as deviceWords } from "./devices.js";
import { columns as processColumns, rows as processRows, words as processWords } from "./processes.js";
import { sortedTable } from "./table.js";
import { follow } from "./stream.js";
import { keys } from "./keys.js";
import { remember } from "./recent.js";
import { panel } from "./panel.js";
import { showAlerts, showSources } from "./health.js";

const at = (id) => document.getElementById(id);
let latest;
let paused = false;
let lastSequence;
let token = sessionStorage.getItem("telltale-token") ?? "";

const details = panel(() => latest?.snapshot, () => token);
const devices = sortedDevices();
const processes = sortedProcesses();


function sortedDevices() {
  return sortedTable(at("devices"), deviceColumns, {
    key: (device) => device.id,
    order: ["id", false],
    open: (device) => details.device(device),
    empty: () => (filter() ? "No device matches the filter." : "No device: none is listed by a driver, a ledger or a region."),
  });
}

function sortedProcesses() {
  return sortedTable(at("processes"), processColumns, {
    key: (row) => row.key,
    order: ["dram", true],
    open: (row) => details.process(row.process),
    empty: () => (filter() ? "No process matches the filter." : "No process holds a device."),
  });
}

function filter() {
  return at("filter").value.trim().toLowerCase();
}

function draw() {
  if (!latest) return;
  const { snapshot, alerts } = latest;
  const wanted = filter().split(/\s+/).filter(Boolean);
  const matches = (text) => wanted.every((word) => text.includes(word));
  const listed = snapshot.devices.map((device, place) => ({ ...device, place })).filter((device) => matches(deviceWords(device)));
  const all = processRows(snapshot);
  const rows = all.filter((row) => matches(processWords(row)));
  devices.show(listed);
  processes.show(rows);
  at("device-count").textContent = count(listed.length, snapshot.devices.length);
  at("process-count").textContent = count(new Set(rows.map((row) => row.process)).size, snapshot.processes.length);
  at("withheld").textContent = unshown(snapshot);
  at("withheld").hidden = !at("withheld").textContent;
  totals(snapshot);
  showSources(snapshot);
  showAlerts(alerts ?? []);
  details.refresh();
}

function count(shown, all) {
  return shown === all ? `${all}` : `${shown} of ${all}`;
}

// Which processes are in no row, and what would show them.
function unshown(snapshot) {
  const some = (number) => `${number} more ${number === 1 ? "process is" : "processes are"}`;
  const { withheld_processes: withheld = 0, closed_processes: closed = 0 } = snapshot;
  const sentences = [];
  if (withheld) sentences.push(`${some(withheld)} not shown to you; the devices' sums have their memory. With the service's token (Help) you see them.`);
  if (closed) sentences.push(`${some(closed)} closed to the service, and in no figure: it runs as a user who may not read their ledgers.`);
  return sentences.join(" ");
}

function totals(snapshot) {
  const used = (name) => snapshot.devices.map((device) => value(spaceOf(device, name)?.used_bytes)).filter((one) => one !== undefined);
  const pieces = [
    ["devices", snapshot.devices.length],
    ["processes", snapshot.processes.length + (snapshot.withheld_processes ?? 0)],
    ["DRAM in use", bytes(used("dram").reduce((sum, one) => sum + one, 0))],
    ["to collect this", `${(snapshot.collected_in_ns / 1e6).toFixed(1)} ms`],
  ];
  at("totals").replaceChildren(...pieces.map(([name, figure]) => {
    const piece = element("span");
    piece.append(element("b", undefined, String(figure)), ` ${name}`);
    return piece;
  }));
}

function connection(state, words) {
  at("connection").dataset.state = paused ? "paused" : state;
  if (at("connection").textContent !== words) at("connection").textContent = words;
}

const stream = follow("api/v1/stream", () => token, {
  snapshot(data, sequence) {
    // The stream sends the snapshot with what else there is beside its fields.
    const message = { snapshot: data, alerts: data.alerts };
    remember(message.snapshot);
    const skipped = lastSequence === undefined ? 0 : Math.max(sequence - lastSequence - 1, 0) || 0;
    lastSequence = sequence;
    if (paused) return;
    latest = message;
    draw();
    const lag = skipped ? `, ${skipped} skipped: this page lags` : "";
    connection("live", `live, as of ${clock(message.snapshot.taken_at)}${lag}`);
  },
  state: (state, words) => connection(state, latest ? `${words}; figures are of ${clock(latest.snapshot.taken_at)}` : words),
});

// A stream that is silent is said to be old before it is given up.
setInterval(() => {
  if (!latest || paused) return;
  const age = (Date.now() - milliseconds(latest.snapshot.taken_at)) / 1000;
  if (age > 10 && at("connection").dataset.state === "live") connection("lost", `no news for ${duration(age)}`);
}, 1000);

function pause() {
  paused = !paused;
  at("pause").ariaPressed = String(paused);
  at("pause").textContent = paused ? "Go on" : "Pause";
  connection(paused ? "paused" : "live", paused && latest ? `paused at ${clock(latest.snapshot.taken_at)}` : "going on");
}

function help() {
  at("token").value = token;
  at("help").showModal();
}

at("filter").addEventListener("input", draw);
at("pause").addEventListener("click", pause);
at("help-button").addEventListener("click", help);
at("help-close").addEventListener("click", () => at("help").close());
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  sessionStorage.setItem("telltale-token", token);
  at("help").close();
  stream.restart();
});
keys({ "/": () => at("filter").focus(), p: pause, "?": help });
