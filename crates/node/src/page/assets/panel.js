// Details of one device or process: its plots over time and its facts.

import { element } from "./cells.js";
import { facts as deviceFacts } from "./devices.js";
import { facts as processFacts, identity } from "./processes.js";
import { devicePlots, processPlots } from "./history.js";
import { clearHeld, showHeld } from "./held.js";
import { drawPlots, resizePlots } from "./plots.js";

// Milliseconds from one look into the history to the next, while details are open.
const AGAIN = 5000;

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
    const source = { seconds, token: token(), kept: snapshot().reader.has_history };
    const found = open.device ? await devicePlots(open.device, source) : await processPlots(open.process, source);
    if (mine !== asked || !open) return;
    open.note = found.note;
    showNote();
    drawPlots(at("plots"), found.plots);
  }

  function showNote() {
    const gone = current() ? undefined : open.device ? "This device is no longer listed." : "This process is no longer there; these are its last values.";
    const words = [gone, open.note].filter(Boolean).join(" ");
    at("panel-note").hidden = !words;
    if (at("panel-note").textContent !== words) at("panel-note").textContent = words;
  }

  function showFacts() {
    showNote();
    const shown = current();
    if (!shown) return clearHeld(at("panel-held"));
    showHeld(at("panel-held"), snapshot(), { device: open.device, process: open.process }, openers);
    const pairs = open.device ? deviceFacts(shown) : processFacts(shown, snapshot().devices);
    const shape = JSON.stringify(pairs);
    if (open.shape === shape) return;
    open.shape = shape;
    at("panel-facts").replaceChildren(...pairs.flatMap(([name, fact]) => [element("dt", undefined, name), element("dd", undefined, fact)]));
  }

  function show(what, title) {
    open = what;
    at("panel-title").replaceChildren(...title);
    at("plots").replaceChildren();
    showFacts();
    if (!at("panel").open) at("panel").showModal();
    plots();
  }

  at("range").addEventListener("change", plots);
  at("panel-close").addEventListener("click", () => at("panel").close());
  at("panel").addEventListener("close", () => {
    // This comes a moment after the closing, by when others may be open.
    if (at("panel").open) return;
    open = undefined;
    // Nothing stays behind of what its reader may no longer see after this.
    drawPlots(at("plots"), []);
    at("panel-title").replaceChildren();
    at("panel-facts").replaceChildren();
    clearHeld(at("panel-held"));
  });
  window.addEventListener("resize", () => open && resizePlots(at("plots")));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => open && plots());
  setInterval(() => open && plots(), AGAIN);

  const openers = {
    device: (device) => show({ device: device.id }, [`Device ${device.id}`]),
    process: (process) => show({ process: identity(process) }, [element("bdi", undefined, process.name), ` (${process.pid ?? "hidden"})`]),
  };
  return {
    ...openers,
    /** The snapshot has changed. */
    refresh() {
      if (open) showFacts();
    },
  };
}
