// Series for the plots: from the service's history, and where it keeps none, what this page has seen.

import { milliseconds } from "./format.js";
import { recent, recentKeys } from "./recent.js";

const MEMORY = [["dram", "DRAM in use"], ["l1", "L1 in use"]];
const SENSORS = [["temperature", "Temperature", "celsius"], ["power", "Power", "watts"]];
// The history's names of what a plot shows: [metric, label's value, title].
const DEVICE = [
  ["telltale_device_memory_space_used_bytes", "dram", "DRAM in use"],
  ["telltale_device_memory_space_used_bytes", "l1", "L1 in use"],
  ["telltale_device_temperature_celsius", undefined, "Temperature"],
  ["telltale_device_power_watts", undefined, "Power"],
];

/** Plots of a device over the last `seconds`: { plots, note }. */
export async function devicePlots(id, seconds, token) {
  const answer = await ask({ subjects: "devices", device: id, seconds }, token);
  if (answer.series) {
    const plots = DEVICE.map(([metric, label, title]) => {
      const series = answer.series.filter((one) => one.metric === metric && (!label || one.label?.[1] === label));
      return plot(title, answer, series, () => title);
    });
    return { plots: plots.filter(hasLines) };
  }
  const kinds = [...MEMORY.map(([name, title]) => [name, title, "bytes"]), ...SENSORS];
  const seen = kinds.map(([name, title, unit]) => seenPlot(title, unit, [[`device/${id}/${name}`, title]], seconds));
  return { plots: seen.filter((one) => one.times.length), note: answer.note };
}

/** The same of a process, a line for each kind of memory on each device. */
export async function processPlots(identity, seconds, token) {
  const answer = await ask({ subjects: "processes", process: identity, seconds, metric: "memory_live" }, token);
  if (answer.series) {
    const name = (series) => [series.device, series.label?.[1]].filter(Boolean).join(" ");
    return { plots: [plot("Memory", answer, answer.series, name)].filter(hasLines) };
  }
  const seen = MEMORY.map(([name, title]) => {
    const keys = recentKeys(`process/${identity}/`).filter((key) => key.endsWith(`/${name}`));
    return seenPlot(title, "bytes", keys.map((key) => [key, key.split("/")[2]]), seconds);
  });
  return { plots: seen.filter((one) => one.times.length), note: answer.note };
}

// The history's answer, or a note that says why there is none.
async function ask(question, token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  try {
    const answer = await fetch(`api/v1/history?${new URLSearchParams(question)}`, { headers });
    const body = await answer.json();
    if (answer.ok) return body.series.some((one) => one.whole.mean !== null) ? body : { note: "The history has nothing of this time yet; these are the figures that this page has seen." };
    return { note: `${body.detail ?? "The history does not answer."} These are the figures that this page has seen.` };
  } catch (error) {
    return { note: `The history does not answer (${error.message}); these are the figures that this page has seen.` };
  }
}

// The greatest of each span, so that no peak is lost, and the mean where that is something else.
function plot(title, answer, series, name) {
  const first = milliseconds(answer.from) / 1000;
  const times = Array.from({ length: answer.points }, (_, place) => first + (place * answer.step_ms) / 1000);
  const known = series.filter((one) => one.whole.mean !== null);
  const lines = known.flatMap((one) => {
    const mean = { name: name(one), values: one.mean };
    const apart = one.greatest.some((value, place) => value !== one.mean[place]);
    return apart && known.length === 1 ? [{ name: "at most", values: one.greatest }, { ...mean, name: "mean" }] : [mean];
  });
  return { title, unit: known[0]?.unit, times, lines };
}

function hasLines(one) {
  return one.lines.length > 0;
}

// Lines of one plot share their times: the page takes note of all at once.
function seenPlot(title, unit, keys, seconds) {
  const from = Date.now() / 1000 - seconds;
  const all = keys.map(([key]) => recent(key));
  const times = [...new Set(all.flatMap(([at]) => at))].filter((at) => at >= from).sort((one, other) => one - other);
  const lines = all.map(([at, values], index) => {
    const known = new Map(at.map((moment, place) => [moment, values[place]]));
    return { name: keys[index][1], values: times.map((moment) => known.get(moment) ?? null) };
  });
  return { title, unit, times, lines };
}
