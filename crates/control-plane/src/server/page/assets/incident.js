// One incident: what was seen, what it was taken for, and why.

import { matrix } from "./matrix.js";
import { element, moment } from "./tables.js";

const at = (id) => document.getElementById(id);

// Shows all that is known of an incident; nothing hides it.
export function showIncident(answer) {
  at("incident").hidden = !answer;
  if (!answer) return;
  const { incident, verdicts } = answer;
  at("incident-title").textContent = `Incident ${incident.id} of epoch ${incident.epoch}, ${moment(incident.opened_unix_ms)}`;
  at("incident-text").textContent = incident.text;
  const signs = incident.signs.map((sign) => element("li", {}, sign.text));
  if (incident.dropped_signs) signs.push(element("li", {}, `and ${incident.dropped_signs} more`));
  at("signs").replaceChildren(...signs);
  const found = verdicts.map((verdict) => {
    const evidence = verdict.evidence.map((one) => element("li", {}, one.text));
    return element("li", {}, verdict.text, element("ul", {}, ...evidence));
  });
  at("verdicts").replaceChildren(...(found.length ? found : [element("li", {}, "Nothing was suspected.")]));
  const map = answer.matrix;
  at("map").hidden = !map;
  at("no-map").hidden = Boolean(map);
  if (!map) return;
  const more = map.left_out ? ` ${map.left_out} nodes are left out.` : "";
  at("map-note").textContent = `${moment(map.at_unix_ms)}.${more}`;
  matrix(at("matrix"), at("legend"), map);
}
