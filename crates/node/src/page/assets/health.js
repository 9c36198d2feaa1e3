// How the sources did, and which alerts there are.

import { clock } from "./format.js";
import { element } from "./cells.js";
import { wrong } from "./device.js";

const at = (id) => document.getElementById(id);
const SEVERITIES = ["info", "warning", "critical"];

/** The table of sources and what went wrong in them. */
export function showSources(snapshot) {
  const failed = snapshot.sources.filter((source) => source.errors.length);
  const faults = [...snapshot.devices.flatMap(({ id, faults }) => wrong(faults).map((fault) => ({ ...fault, part: id }))), ...wrong(snapshot.faults)].map(({ part, detail }) => `${part}: ${detail}`);
  const took = `${(snapshot.collected_in_ns / 1e6).toFixed(1)} ms to collect`;
  const counts = [faults.length ? `${faults.length} ${faults.length === 1 ? "fault" : "faults"}` : "", failed.length ? `${failed.length} with errors` : ""];
  at("source-count").textContent = `${counts.filter(Boolean).join(", ") || "all well"}, ${took}`;
  if (!at("sources-details").open) return;
  const rows = snapshot.sources.map((source) => {
    const row = element("tr");
    const errors = source.errors.length + source.errors_dropped;
    const name = element("th", undefined, source.name);
    name.scope = "row";
    row.append(
      name,
      element("td", "number", `${(source.duration_ns / 1e6).toFixed(2)} ms`),
      element("td", undefined, errors ? `${errors} ${errors === 1 ? "error" : "errors"}` : "none"),
    );
    return row;
  });
  at("sources").tBodies[0].replaceChildren(...rows);
  const errors = failed.flatMap((source) => source.errors.map((error) => element("li", undefined, `${source.name}: ${error.subject}: ${error.detail || error.reason}`)));
  const noticed = snapshot.sources.flatMap((source) =>
    (source.notes || []).map((note) => element("li", undefined, `${source.name}, noticed: ${note.count} of ${note.subject}: ${note.detail}`)),
  );
  at("source-errors").replaceChildren(...faults.map((text) => element("li", undefined, text)), ...errors, ...noticed);
}

/** Alerts that fire or are about to, the most severe first; nothing is shown when there is none. */
export function showAlerts(alerts, withheld) {
  const firing = alerts.filter((alert) => alert.state === "firing");
  at("machine").textContent = location.host;
  document.title = `${firing.length ? `(${firing.length}) ` : ""}Telltale ${location.host}`;
  at("alerts").hidden = !alerts.length && !withheld;
  const hidden = withheld ? `, ${withheld} about processes not shown` : "";
  at("alert-count").textContent = `${firing.length} firing, ${alerts.length - firing.length} pending${hidden}`;
  const list = at("alert-list");
  const shape = JSON.stringify(alerts.map((alert) => [alert.rule, alert.text, alert.state, alert.severity, alert.since]).concat(withheld));
  if (list.last === shape) return;
  list.last = shape;
  const rank = (alert) => (alert.state === "firing" ? 10 : 0) + SEVERITIES.indexOf(alert.severity);
  const sorted = [...alerts].sort((one, other) => rank(other) - rank(one));
  list.replaceChildren(...sorted.map(item));
  showFold(sorted, withheld);
}

// On a narrow screen this stands for the list until it is opened: how many of which severity, and the most severe one.
function showFold(alerts, withheld) {
  const fold = at("alert-fold");
  fold.hidden = !alerts.length;
  if (!alerts.length) return;
  const counts = [...new Set(alerts.map(severity))].map((name) => `${alerts.filter((one) => severity(one) === name).length} ${name}`);
  if (withheld) counts.push(`${withheld} not shown`);
  fold.dataset.severity = shade(alerts[0]);
  fold.querySelector("strong").textContent = `Alerts: ${counts.join(", ")}`;
  fold.querySelector("span").textContent = alerts[0].text;
}

/** Opens and closes the list where it is folded. */
export function fold() {
  const button = at("alert-fold");
  button.ariaExpanded = String(button.ariaExpanded !== "true");
}

const severity = ({ state, severity }) => (state === "pending" ? "pending" : severity);
const shade = ({ state, severity }) => (state === "pending" ? "info" : severity);

function item(alert) {
  const line = element("li");
  const pending = alert.state === "pending";
  line.dataset.severity = shade(alert);
  const since = element("time", undefined, `since ${clock(alert.fired_at ?? alert.since)}`);
  line.append(element("b", undefined, pending ? `pending ${alert.severity}` : alert.severity), element("span", undefined, alert.text), element("small", "rule", alert.rule), since);
  return line;
}
