// Series for the plots: from the service's history, and where it keeps none, what this page has seen.

import { milliseconds } from "./format.js";
import { hue, hueOf } from "./colours.js";
import { named } from "./process.js";
import { recent, recentKeys } from "./recent.js";
import { SENSORS } from "./sensors.js";

// What there is to plot of a device: how this page remembers it, its title and unit, and the history's metric with
// the label that tells its series from others; for memory, the space: of the same metric it has the kinds that are in there.
const DEVICE = [
  { name: "dram", title: "DRAM by process", unit: "bytes", metric: "telltale_device_memory_used_bytes", space: "dram" },
  { name: "l1", title: "L1 by process", unit: "bytes", metric: "telltale_device_memory_used_bytes", space: "l1" },
  ...SENSORS.filter((sensor) => sensor.graph),
];
const NOTHING_YET = "The history has nothing of this time yet; these are the values that this page has seen.";
const HELD = "telltale_process_memory_live_bytes";
const PROCESS = [
  { name: "dram", title: "DRAM", unit: "bytes", metric: HELD, space: "dram" },
  { name: "l1", title: "L1", unit: "bytes", metric: HELD, space: "l1" },
];
// Milliseconds after which a question is given up.
const LONGEST = 60_000;
// Processes with an area of their own in a plot; the others share one.
const MOST_AREAS = 12;

/**
 * Plots of a device, its memory stacked by process: { plots, note }; `now` of a plot names the series of recent.js
 * that has its newest value. `source` has the `seconds` to look back, the `token`, and whether the service has
 * `kept` a history.
 */
export async function devicePlots(id, source) {
  // One question: parts and whole of two would be of different moments.
  const answer = await ask({ device: id, seconds: source.seconds }, source);
  const found = drawn(DEVICE, answer, source.seconds, (kind) => [[`device/${id}/${kind.name}`, kind.title]]);
  const plots = found.plots.map((plot) => {
    const now = `device/${id}/${plot.name}`;
    return plot.space && answer.body ? { ...plot, now, areas: areas(plot, answer.body) } : { ...plot, now };
  });
  return { plots, note: found.note };
}

/** Plots of a process, a line for each device. */
export async function processPlots(identity, source) {
  const answer = await ask({ subjects: "processes", process: identity, seconds: source.seconds, metric: "memory_live" }, source);
  const found = drawn(PROCESS, answer, source.seconds, (kind) => {
    const keys = recentKeys(`process/${identity}/`).filter((key) => key.endsWith(`/${kind.name}`));
    return keys.map((key) => [key, key.split("/")[2]]);
  });
  const plots = found.plots.map((plot) => {
    const lines = plot.lines.map((line, place) => ({ ...line, hue: plot.lines.length === 1 ? hueOf(identity) : hue(place) }));
    const now = lines.length === 1 ? `process/${identity}/${lines[0].name}/${plot.name}` : undefined;
    return { ...plot, now, lines };
  });
  return { plots, note: found.note };
}

// What each process had of a device's memory at the moments of its plot, those that had most; the rest of what
// was in use comes last. Nothing where no process is known.
function areas({ space, lines }, body) {
  const series = body.series.filter((one) => one.metric === HELD && isOf(one, space) && one.whole.greatest);
  if (!series.length) return undefined;
  series.sort((one, other) => other.whole.mean - one.whole.mean);
  const found = series.slice(0, MOST_AREAS).map(({ process, mean }) => ({
    name: named(process), hue: hueOf(process.key), started: process.identity?.start_time_ticks ?? 0,
    mean: mean.map((one) => one ?? 0),
  }));
  found.sort((one, other) => one.started - other.started || (one.name < other.name ? -1 : 1));
  const [{ mean: used }] = lines;
  const rest = used.map((all, at) => (all === null ? null : Math.max(all - found.reduce((sum, one) => sum + one.mean[at], 0), 0)));
  // Sums of what was seen at different moments of a span differ a little.
  const isNothing = Math.max(...rest) < Math.max(...used) / 100;
  const cut = found.map((one) => ({ ...one, mean: one.mean.map((part, at) => (used[at] === null ? null : part)) }));
  return isNothing ? cut : [...cut, { name: "others", hue: "hue-other", mean: rest }];
}

/** The DRAM of devices over the last ten minutes, as recent.js has it; nothing without a history. */
export async function recentPast(token) {
  const { body } = await ask({ subjects: "devices", seconds: 600, metric: "memory_used" }, { token, kept: true });
  if (!body) return undefined;
  const dram = body.series.filter((one) => isOf(one, "dram"));
  return { seconds: moments(body), series: dram.map((one) => [`device/${one.device}/dram`, one.mean]) };
}

function drawn(kinds, { body, note }, seconds, seen) {
  const plots = kinds.map((kind) => (body ? kept(kind, body) : remembered(kind, seen(kind), seconds)));
  return { plots: plots.filter((one) => one.lines.some((line) => line.mean.some((value) => value !== null))), note };
}

// The history's answer as { body }, or { note }, which says why there is none.
async function ask(question, { token, kept }) {
  if (!kept) return { note: "This service keeps no history; its log says why. These are the values that this page has seen." };
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  try {
    const answer = await fetch(`api/v1/history?${new URLSearchParams(question)}`, { headers, signal: AbortSignal.timeout(LONGEST) });
    const body = await answer.json();
    // What has come a moment ago is not in the history yet.
    if (answer.status === 404) return { note: NOTHING_YET };
    if (!answer.ok) return { note: `${sentence(body.detail ?? "the history does not answer")} These are the values that this page has seen.` };
    if (body.series.some((one) => one.whole.mean !== null)) return { body };
    return { note: NOTHING_YET };
  } catch (error) {
    return { note: `The history does not answer (${error.message}); these are the values that this page has seen.` };
  }
}

function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

function moments(answer) {
  return Array.from({ length: answer.points }, (_, place) => (milliseconds(answer.from) + place * answer.step_ms) / 1000);
}

// Whether a series is of all that is in a memory space.
function isOf(series, space) {
  return series.label?.[0] === "space" && series.label[1] === space;
}

function isSeries(series, { space, label }) {
  if (space) return isOf(series, space);
  return !label || (series.label?.[0] === label[0] && series.label[1] === label[1]);
}

// The mean of each span, between its least and its greatest, so that no peak is lost.
function kept(kind, answer) {
  const found = answer.series.filter((one) => one.metric === kind.metric && isSeries(one, kind) && one.whole.mean !== null);
  const lines = found.map(({ device, least, mean, greatest, whole }) => ({ name: device, least, mean, greatest, whole }));
  return { ...kind, times: moments(answer), lines };
}

// Lines of one plot share their times: the page takes note of all at once.
function remembered(kind, keys, seconds) {
  const all = keys.map(([key, name]) => [name, ...recent(key)]);
  const newest = Math.max(...all.map(([, times]) => times.at(-1) ?? 0), 0);
  const times = (all[0]?.[1] ?? []).filter((at) => at >= newest - seconds);
  const lines = all.map(([name, , values]) => ({ name, mean: times.length ? values.slice(-times.length) : [] }));
  return { ...kind, times, lines };
}
