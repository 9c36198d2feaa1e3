// What a process and all of the host use: processors, memory, storage. The service reads it while a page looks.

import { reading, text } from "./cells.js";
import { bytes, clock, reason, value } from "./format.js";

// Of processor time, 100 % is one processor.
const percent = (share) => `${(share * 100).toFixed(0)} %`;
const rate = (count) => `${bytes(count)}/s`;

const column = (name, title, field, shown) => ({
  name, title, number: true,
  has: ({ process }) => process.usage,
  cell: ({ process }) => (process.usage ? reading(process.usage[field], shown) : text(undefined, "not read")),
  sort: ({ process }) => value(process.usage?.[field]),
});

/** Columns of the table of processes; the details have the rest. */
export const usageColumns = [
  column("cpu", "CPU", "cpu_ratio", percent),
  column("rss", "RSS", "resident_bytes", bytes),
];

/** Facts of one process, as pairs of words. */
export function usageFacts({ started_at: started, usage }) {
  const fact = (name, field, shown) => [name, value(usage[field]) === undefined ? reason(usage[field]) : shown(value(usage[field]))];
  return [
    ...(started === undefined ? [] : [["started", clock(started)]]),
    ...(usage ? [
      fact("CPU, 100 % is one processor", "cpu_ratio", percent),
      fact("resident memory", "resident_bytes", bytes),
      fact("threads", "threads", String),
      fact("reads from storage", "read_bytes_per_second", rate),
      fact("writes to storage", "written_bytes_per_second", rate),
    ] : []),
  ];
}

/** The host's tile among the totals; none where the service does not read it. */
export function hostTile({ host }) {
  if (!host) return [];
  const fields = ["cpu_ratio", "used_bytes", "memory_bytes", "load_1"];
  const [cpu, used, all, load] = fields.map((field) => value(host[field]));
  const more = [
    ...(used !== undefined && all ? [`RAM ${percent(used / all)}`] : []),
    ...(load === undefined ? [] : [`load ${load.toFixed(1)}`]),
  ];
  return [["Host CPU", cpu === undefined ? "–" : percent(cpu), more.join(", "), cpu]];
}
