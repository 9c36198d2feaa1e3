// Details of one device or process: its plots over time and its facts.

import { element } from "./cells.js";
import { facts as deviceFacts } from "./devices.js";
import { facts as processFacts, identity } from "./processes.js";
import { devicePlots, processPlots } from "./history.js";
import { drawPlots } from "./plots.js";

const at = (id) => document.getElementById(id);

/** `snapshot()` gives the latest one, `token()` what to show the service. */
export function panel(snapshot, token) {
  let open;
  let asked = 0;

  function current() {
    const now = snapshot();
    if (!now || !open) return undefined;
    return open.device
      ? now.devices.find((device) => device.id === open.device)
      : now.processes.find((process) => identity(process) === open.process);
  }

  async function plots() {
    const mine = ++asked;
    const seconds = Number(at("range").value);
    const found = open.device
      ? await devicePlots(open.device, seconds, token())
      : await processPlots(open.process, seconds, token());
    if (mine !== asked || !open) return;
    at("panel-note").hidden = !found.note;
    at("panel-note").textContent = found.note ?? "";
    drawPlots(at("plots"), found.plots);
  }

  function showFacts() {
    const shown = current();
    if (!shown) return;
    const pairs = open.device ? deviceFacts(shown) : processFacts(shown, snapshot().devices);
    at("panel-facts").replaceChildren(...pairs.flatMap(([name, fact]) => [element("dt", undefined, name), element("dd", undefined, String(fact))]));
  }

  function show(what, title) {
    open = what;
    at("panel-title").textContent = title;
    at("plots").replaceChildren();
    showFacts();
    if (!at("panel").open) at("panel").showModal();
    plots();
  }

  at("range").addEventListener("change", plots);
  at("panel-close").addEventListener("click", () => at("panel").close());
  at("panel").addEventListener("close", () => {
    open = undefined;
    at("plots").replaceChildren();
  });
  setInterval(() => {
    if (open) plots();
  }, 5000);

  return {
    device: (device) => show({ device: device.id }, `Device ${device.id}`),
    process: (process) => show({ process: identity(process) }, `${process.name} (${process.pid ?? "hidden"})`),
    /** The snapshot has changed. */
    refresh() {
      if (open) showFacts();
    },
  };
}
