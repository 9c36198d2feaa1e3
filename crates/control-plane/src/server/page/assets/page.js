// The page: asks the coordinator again and again, and shows what it says. Nothing is decided here,
// and nothing can be ordered.

import { TokenNeeded, access, ask, askForToken } from "./access.js";
import { showIncident } from "./incident.js";
import { showSteps } from "./steps.js";
import { age, bytes, duration, element, moment, table } from "./tables.js";

// Milliseconds from one request to the next.
const LOOK = 2000;

const at = (id) => document.getElementById(id);
let chosen;
let turn = 0;

const nodeColumns = [
  ["Node", "whole", (node) => node.name],
  ["State", "", (node) => state(node)],
  ["Slot", "number", (node) => node.slot ?? ""],
  ["First rank", "number more", (node) => node.first_rank ?? ""],
  ["Workers", "", (node) => workers(node)],
  ["Heard", "number", (node) => (node.heard_ago_ns === undefined ? "never" : age(node.heard_ago_ns))],
  ["Failures", "number", (node) => node.failures],
  ["CPU", "number", (node) => (node.processors_busy_ratio === undefined ? "" : `${Math.round(node.processors_busy_ratio * 100)}%`)],
  ["Memory", "number more", (node) => (node.memory_used_bytes === undefined ? "" : bytes(node.memory_used_bytes))],
  ["Devices", "more", (node) => devices(node)],
  ["Address", "more", (node) => node.address ?? ""],
];

const incidentColumns = [
  ["Incident", "", (incident) => choice(incident)],
  ["Opened", "whole", (incident) => moment(incident.opened_unix_ms)],
  ["Epoch", "number more", (incident) => incident.epoch],
  ["Standing", "", (incident) => element("td", { class: ["collecting", "held"].includes(incident.standing) ? "alarm" : undefined }, incident.standing)],
  ["What is done", "line", (incident) => incident.text],
];

function state(node) {
  const text = node.bar ? `${node.state}: ${node.bar}` : node.state;
  return element("td", { class: node.state === "silent" ? "alarm" : undefined }, text);
}

function workers(node) {
  const counts = new Map();
  for (const worker of node.worker_states) counts.set(worker.state, (counts.get(worker.state) ?? 0) + 1);
  const text = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  return element("td", { class: counts.has("failed") ? "alarm" : undefined }, text);
}

function devices(node) {
  const ill = node.devices.filter((device) => !device.healthy);
  const text = ill.length ? `${ill.length} of ${node.devices.length} ill` : node.devices.length ? `${node.devices.length} well` : "";
  const why = ill.map((device) => `${device.device}: ${device.reason}`).join("\n");
  return element("td", { class: ill.length ? "alarm more" : "more", title: why || undefined }, text);
}

function choice(incident) {
  const button = element("button", { type: "button", class: "plain", "aria-label": `Explain incident ${incident.id}` }, incident.id);
  button.addEventListener("click", async () => {
    chosen = incident.id;
    await look();
    at("incident-title").focus();
  });
  return button;
}

function standing(job) {
  if (job.phase === "over") return job.outcome === "finished" ? "finished" : "given up";
  if (job.phase === "committed" && job.runs) return job.hangs ? `runs, but hangs (incident ${job.open_incident})` : "runs";
  if (job.phase === "committed") return "starts its workers";
  if (job.phase === "preparing") return job.waits_for ? `waits: ${job.waits_for.replaceAll("_", " ")}` : "stops its workers";
  return "waits for nodes";
}

function showStatus(job) {
  at("job").textContent = `· ${job.job}`;
  const lines = [
    ["job", `${standing(job)}; epoch ${job.epoch}, mode ${job.mode}`],
    ["nodes", `${job.filled_slots} of ${job.slots} slots filled, ${job.active_nodes} heard; ${job.standby_nodes} standby, ${job.silent_nodes} silent, ${job.barred_nodes} barred${job.ended_nodes ? `, ${job.ended_nodes} ended` : ""}`],
    ["rank 0", job.master ?? "nowhere yet"],
    ["restarts", `${job.restarts} in all; of the budget ${job.counted_restarts} of ${job.restart_budget}`],
    ["evictions", `of the budget ${job.counted_evictions} of ${job.eviction_budget}`],
    ["incident", job.open_incident ? `${job.open_incident} is open` : "none is open"],
    ["leader", `term ${job.term}, for ${duration(job.led_for_ns)}; Telltale ${job.version}; decisions are in ${job.store}`],
  ];
  const ill = job.store_trouble && `fails${job.store_troubled_for_ns === undefined ? "" : `, for ${age(job.store_troubled_for_ns)}`}: ${job.store_trouble}`;
  if (ill) lines.unshift(["store", ill, "alarm"]);
  at("status").replaceChildren(...lines.flatMap(([name, text, kind]) => [element("dt", {}, name), element("dd", { class: kind }, text)]));
}

// Keeps the keyboard where it is when a table is redrawn.
function keepingFocus(draw) {
  const label = document.activeElement?.getAttribute("aria-label");
  draw();
  if (!label || document.activeElement !== document.body) return;
  for (const button of document.querySelectorAll("button.plain")) if (button.getAttribute("aria-label") === label) button.focus();
}

async function look() {
  turn += 1;
  const mine = turn;
  try {
    const [job, steps, nodes, incidents] = await Promise.all(["status", "steps", "nodes", "incidents"].map(ask));
    const shown = chosen ?? incidents[0]?.id;
    const answer = shown ? await ask(`incidents/${encodeURIComponent(shown)}`).catch(() => undefined) : undefined;
    // A later look was faster.
    if (mine !== turn) return;
    at("shown").hidden = false;
    showStatus(job);
    showSteps(at("steps"), steps);
    keepingFocus(() => {
      table(at("nodes"), nodeColumns, nodes, "No node has registered.");
      table(at("incidents"), incidentColumns, incidents, "No incident is known.");
    });
    showIncident(answer);
    at("problem").hidden = true;
    at("connection").dataset.state = "live";
    at("connection").textContent = `as of ${moment(Date.now())}`;
  } catch (error) {
    if (mine !== turn) return;
    at("problem").textContent = error.message;
    at("problem").hidden = false;
    const needsToken = error instanceof TokenNeeded;
    at("connection").dataset.state = needsToken ? "withheld" : "lost";
    at("connection").textContent = needsToken ? "token needed" : "no answer";
    if (needsToken) askForToken(error.message);
  }
}

async function follow() {
  await look();
  setTimeout(follow, LOOK);
}

access(() => look());
follow();
