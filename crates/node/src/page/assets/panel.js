// Details of one device or process: who holds it or what it holds, its plots over time, and its facts.

import { element, swatch } from "./cells.js";
import { hueOf } from "./colours.js";
import { facts as deviceFacts } from "./devices.js";
import { identity } from "./process.js";
import { facts as processFacts } from "./processes.js";
import { devicePlots, processPlots } from "./history.js";
import { clearHeld, showHeld } from "./held.js";
import { describePlots, drawPlots, resizePlots } from "./plots.js";

// Milliseconds from one look into the history to the next, while details are open.
const AGAIN = 5000;

const at = (id) => document.getElementById(id);

/** `snapshot()` gives the latest one, `token()` what to show the service, `place` is the page's address. */
export function panel(snapshot, token, place) {
  let open;
  let [asked, answered] = [0, 0];

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
    if (mine !== asked) return;
    answered = mine;
    if (!open) return;
    open.note = found.note;
    showNote();
    drawPlots(at("plots"), found.plots);
  }

  function showNote() {
    const gone = open.device ? "This device is not listed." : "This process is not there, or not shown to you; what is here is of the past.";
    const words = [current() ? undefined : gone, open.note].filter(Boolean).join(" ");
    at("panel-note").hidden = !words;
    if (at("panel-note").textContent !== words) at("panel-note").textContent = words;
  }

  // A process that is in the address alone is known by its pid.
  function title(shown) {
    if (open.device) return [`Device ${open.device}`];
    if (shown) return [swatch(hueOf(open.process)), element("bdi", undefined, shown.name), ` (${shown.pid ?? "hidden"})`];
    return open.title ?? [`Process ${open.process.split(":").at(-2) ?? open.process.slice("pid-".length)}`];
  }

  function showFacts() {
    showNote();
    const shown = current();
    if (shown || !open.title) {
      const words = title(shown);
      const shape = JSON.stringify([hueOf(open.process ?? ""), ...words.map((one) => one.textContent ?? one)]);
      if (open.titled !== shape) at("panel-title").replaceChildren(...words);
      open.titled = shape;
      if (shown) open.title = words;
    }
    if (!shown) return clearHeld(at("panel-held"));
    showHeld(at("panel-held"), snapshot(), shown, open, openers);
    const pairs = open.device ? deviceFacts(shown) : processFacts(shown, snapshot().devices);
    const shape = JSON.stringify(pairs);
    if (open.shape === shape) return;
    open.shape = shape;
    at("panel-facts").replaceChildren(...pairs.flatMap(([name, fact]) => [element("dt", undefined, name), element("dd", undefined, fact)]));
  }

  function show(what) {
    open = what;
    at("plots").replaceChildren();
    at("panel-facts").replaceChildren();
    showFacts();
    if (!at("panel").open) at("panel").showModal();
    plots();
  }

  function choose(what) {
    show(what);
    place.set({ device: what.device, process: what.process }, { step: true });
  }

  // What the address asks for; before the first snapshot there is nothing to show of it.
  function follow() {
    if (!snapshot()) return;
    const [device, process] = [place.get("device"), place.get("process")];
    if (device || process) {
      if (open?.device !== (device || undefined) || open?.process !== (device ? undefined : process)) show(device ? { device } : { process });
    } else if (open) {
      at("panel").close();
    }
  }

  function range(seconds) {
    const known = [...at("range").options].map((option) => option.value);
    at("range").value = known.includes(seconds) ? seconds : known[0];
    if (open) plots();
  }

  at("range").addEventListener("change", () => {
    place.set({ range: at("range").selectedIndex ? at("range").value : "" });
    plots();
  });
  at("panel-close").addEventListener("click", () => at("panel").close());
  at("panel").addEventListener("close", () => {
    // This comes a moment after the closing, by when others may be open.
    if (at("panel").open) return;
    open = undefined;
    place.set({ device: "", process: "" }, { step: true });
    // Nothing stays behind of what its reader may no longer see after this.
    drawPlots(at("plots"), []);
    at("panel-title").replaceChildren();
    at("panel-facts").replaceChildren();
    clearHeld(at("panel-held"));
  });
  window.addEventListener("resize", () => open && resizePlots(at("plots")));
  // A history that takes longer to answer is not asked once more meanwhile: no answer would be the latest.
  setInterval(() => open && answered === asked && plots(), AGAIN);
  place.bind("range", range);
  place.bind("device", follow);
  place.bind("process", follow);

  const openers = {
    device: (device) => choose({ device: device.id }),
    process: (process) => choose({ process: identity(process) }),
  };
  return {
    ...openers,
    /** The snapshot has changed. */
    refresh() {
      if (!open) return follow();
      showFacts();
      describePlots(at("plots"));
    },
    /** The colours have changed. */
    redraw() {
      if (open) plots();
    },
  };
}
