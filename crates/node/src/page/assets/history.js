// Series for the plots, in the order: the service's history, else what this page has seen itself.

import { recent, recentKeys } from "./recent.js";

const MEMORY = [["dram", "DRAM in use"], ["l1", "L1 in use"]];
const SENSORS = [["temperature", "Temperature", "celsius"], ["power", "Power", "watts"]];

/** Plots of a device over the last `seconds`: { plots, note }. */
export async function devicePlots(id, seconds, token) {
  const kinds = [...MEMORY.map(([name, title]) => [name, title, "bytes"]), ...SENSORS];
  const seen = kinds.map(([name, title, unit]) => seenPlot(title, unit, [[`device/${id}/${name}`, title]], seconds));
  return { plots: seen.filter((plot) => plot.times.length), note: undefined };
}

/** The same of a process, a line for each device. */
export async function processPlots(identity, seconds, token) {
  const seen = MEMORY.map(([name, title]) => {
    const keys = recentKeys(`process/${identity}/`).filter((key) => key.endsWith(`/${name}`));
    return seenPlot(title, "bytes", keys.map((key) => [key, key.split("/")[2]]), seconds);
  });
  return { plots: seen.filter((plot) => plot.times.length), note: undefined };
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
