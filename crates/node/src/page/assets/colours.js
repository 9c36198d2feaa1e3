// The colour of a process, which it keeps in every table, bar and plot for as long as it is there.

import { identity } from "./process.js";

const HUES = 12;
// Hues of one family are hard to tell from each other where they touch: blue, orange, green, red, violet, yellow, teal.
const FAMILIES = [0, 1, 2, 3, 4, 5, 6, 3, 1, 3, 0, 2];
// The hue of each process that was in the last snapshot, by its identity.
let kept = new Map();

/**
 * Gives each process a hue. One that has one keeps it; others take, in the order in which they were
 * started, the least used hue from a place on that follows from what they are: so that pages opened at
 * different times mostly agree. It is of a family that the process's devices do not have yet, if there is one.
 */
export function colour(snapshot) {
  const keys = new Map(snapshot.processes.map((process) => [identity(process), process]));
  kept = new Map([...kept].filter(([key]) => keys.has(key)));
  const uses = new Array(HUES).fill(0);
  const families = new Map(snapshot.devices.map((_, place) => [place, new Set()]));
  const on = (process) => process.devices.map((held) => families.get(held.device)).filter(Boolean);
  const note = (process, hue) => {
    uses[hue] += 1;
    for (const all of on(process)) all.add(FAMILIES[hue]);
  };
  for (const [key, hue] of kept) note(keys.get(key), hue);
  const started = ([, process]) => process.identity?.start_time_ticks ?? Infinity;
  const fresh = [...keys].filter(([key]) => !kept.has(key)).sort((one, other) => started(one) - started(other) || (one[0] < other[0] ? -1 : 1));
  for (const [key, process] of fresh) {
    const taken = on(process);
    const hue = leastUsed(uses, hash(key) % HUES, (place) => !taken.some((all) => all.has(FAMILIES[place])));
    kept.set(key, hue);
    note(process, hue);
  }
}

/** The hue of the process with this identity, one that has ended too: the name of a colour in colours.css. */
export function hueOf(key) {
  return hue(kept.get(key) ?? hash(key));
}

/** The hue of the line at this place, where lines are not processes. */
export function hue(place) {
  return `hue-${place % HUES}`;
}

const probe = document.createElement("i");
probe.hidden = true;

/** A colour of colours.css as it is now, in light or in dark, for what is drawn on a canvas. */
export function resolved(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

function leastUsed(uses, from, isWanted) {
  const least = Math.min(...uses);
  const order = uses.map((_, step) => (from + step) % HUES).filter((place) => uses[place] === least);
  return order.find(isWanted) ?? order[0];
}

// FNV-1a, 32 bits.
function hash(text) {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return state;
}
