// Values as a person reads them. What is not known is a dash, with the reason in its title.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Bytes with three digits. */
export function bytes(count) {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < BINARY.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : digits(value)} ${BINARY[unit]}`;
}

/** A number with three digits. */
export function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

// Units of metrics: boards are known by their MHz.
const UNITS = {
  bytes,
  bytes_per_second: (value) => `${bytes(value)}/s`,
  celsius: (value) => `${digits(value)} °C`,
  watts: (value) => `${digits(value)} W`,
  amperes: (value) => `${digits(value)} A`,
  volts: (value) => `${digits(value)} V`,
  hertz: (value) => `${Math.round(value / 1e6)} MHz`,
  ratio: (value) => `${Math.round(value * 100)} %`,
  revolutions_per_minute: (value) => `${Math.round(value)} rpm`,
  count: String,
};

/** How numbers of a metric's unit are written. */
export function written(unit) {
  return UNITS[unit] ?? digits;
}

/** Seconds as the two largest units. */
export function duration(seconds) {
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  let rest = Math.floor(seconds);
  const parts = [];
  for (const [name, size] of units.slice(first, first + 2)) {
    parts.push(`${Math.floor(rest / size)} ${name}`);
    rest %= size;
  }
  return parts.join(" ");
}

// Characters that change what is seen without being seen, as the service's own `steers` has them:
// control characters, marks that turn the direction of writing, separators of lines, tags.
const STEERING = /[\p{Cc}\u{61c}\u{180e}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{e0000}-\u{e007f}]/gu;

/** A stranger's text with nothing in it that could steer what is shown beside it. */
export function printable(text) {
  return text.replace(STEERING, "?");
}

/** The beginning of a text that is long. */
export function beginning(text, most) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Milliseconds since 1970 of a snapshot's nanoseconds. */
export function milliseconds(nanoseconds) {
  return nanoseconds / 1e6;
}

/** A moment of today as a clock shows it. */
export function clock(nanoseconds) {
  return new Date(milliseconds(nanoseconds)).toLocaleTimeString();
}

/** The value of a reading; undefined where it is absent. */
export function value(reading) {
  return reading && "value" in reading ? reading.value : undefined;
}

const ABSENT = {
  unsupported: "not offered by this device or driver",
  not_yet: "not reported yet",
  permission: "permission denied",
  resetting: "device is resetting",
  implausible: "implausible value",
  timed_out: "timed out",
  gone: "went away while it was read",
  ended: "the process has ended",
  hidden: "not visible from here",
  unknown: "not known",
  not_understood: "not understood",
  refused: "refused",
  missing: "not there",
  failed: "reading failed",
  not_asked: "not asked for",
  not_kept: "not kept in the history",
};

/** Why a reading has no value. */
export function reason(reading) {
  if (!reading) return "not known";
  const words = ABSENT[reading.absent] ?? reading.absent;
  return reading.detail ? `${words}: ${reading.detail}` : words;
}
