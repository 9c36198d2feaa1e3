// How the sources did, and which alerts there are.

import { element } from "./cells.js";

const at = (id) => document.getElementById(id);

/** The table of sources and what went wrong in them. */
export function showSources(snapshot) {
  const failed = snapshot.sources.filter((source) => source.errors.length);
  at("source-count").textContent = failed.length ? `${failed.length} with errors` : "all well";
  const rows = snapshot.sources.map((source) => {
    const row = element("tr");
    const errors = source.errors.length + source.errors_dropped;
    row.append(
      element("td", undefined, source.name),
      element("td", "number", `${(source.duration_ns / 1e6).toFixed(2)} ms`),
      element("td", "number", errors ? `${errors} ${errors === 1 ? "error" : "errors"}` : "well"),
    );
    return row;
  });
  at("sources").replaceChildren(...rows);
  const errors = failed.flatMap((source) => source.errors.map((error) => element("li", undefined, `${source.name}: ${error.subject}: ${error.detail || error.reason}`)));
  at("source-errors").replaceChildren(...errors);
}

/** Alerts that hold now; nothing is shown when there is none. */
export function showAlerts(alerts) {
  at("alerts").hidden = !alerts.length;
  const items = alerts.map((alert) => element("li", undefined, alert.text));
  const list = at("alert-list");
  if (list.textContent !== items.map((item) => item.textContent).join("")) list.replaceChildren(...items);
}
