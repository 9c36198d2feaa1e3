// What one process is: what tells it from others, and what it is called.

import { value } from "./format.js";

/** A process's identity as one word, as the history has it: what tells it from another that had its pid. */
export function identity(process) {
  const known = process.identity;
  if (!known) return `pid-${process.pid ?? "hidden"}`;
  return `${known.boot_id}:${known.pid_namespace}:${known.pid}:${known.start_time_ticks}`;
}

/** Its pid and name. */
export function named(process) {
  return `${process.pid ?? "hidden"} ${process.name}`;
}

/** The user's name, or the number of one that has no name here. */
export function owner(process) {
  return value(process.user) === undefined && value(process.uid) !== undefined ? process.uid : process.user;
}

/** Its command line; an empty text where that is not known. */
export function command(process) {
  return value(process.command) ?? "";
}

/** Its container in words: its pod's names, itself, and what the kubelet has allocated to it. */
export function container({ container: known }) {
  if (!known) return [];
  const { engine, id, pod } = known;
  const names = [pod?.namespace, pod?.name, pod?.container].filter(Boolean).join("/");
  const allocated = (pod?.allocated ?? []).map((one) => `${one.resource}: ${one.ids.join(", ")}`);
  return [names, `${engine} ${id}`, ...allocated].filter(Boolean);
}

/** The same as short as it can be: the pod's name, or the beginning of the container's id. */
export function place({ container: known }) {
  return known ? (known.pod?.name ?? known.id.slice(0, 12)) : "";
}
