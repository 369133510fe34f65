// Numbers, sizes and times as texts. A value that is not known is a dash.

import {h} from "./dom.js";

export const kNone = "–";
const kUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  if (value === null || value === undefined) return kNone;
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1024 && unit < kUnits.length - 1) {
    size /= 1024;
    ++unit;
  }
  const digits = unit === 0 || size >= 100 ? 0 : 1;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)} ${kUnits[unit]}`;
}

export function number(value) {
  return value === null || value === undefined ? kNone : value.toLocaleString("en");
}

export function seconds(value) {
  if (value === null || value === undefined) return kNone;
  const total = Math.max(0, value);
  if (total < 10) return `${Math.round(total * 10) / 10} s`;
  if (total < 90) return `${Math.round(total)} s`;
  const minutes = Math.round(total / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  const both = (large, small) => large + (small.startsWith("0 ") ? "" : ` ${small}`);
  if (hours < 48) return both(`${hours} h`, `${minutes % 60} min`);
  return both(`${Math.floor(hours / 24)} d`, `${hours % 24} h`);
}

export function range(expected) {
  if (!expected) return kNone;
  const {min, max} = expected;
  return min === max ? seconds(min) : `${seconds(min)} to ${seconds(max)}`;
}

export function between(from, until) {
  if (!from) return null;
  return (Date.parse(until ?? new Date().toISOString()) - Date.parse(from)) / 1000;
}

const kClock = new Intl.DateTimeFormat("en-GB", {
  year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  timeZoneName: "short"
});
const kDay = new Intl.DateTimeFormat("en-GB", {year: "numeric", month: "short", day: "2-digit"});

export function absolute(text) {
  return text ? kClock.format(new Date(text)) : kNone;
}

export function relative(text) {
  const away = (Date.parse(text) - Date.now()) / 1000;
  if (Math.abs(away) < 5) return "now";
  return away < 0 ? `${seconds(-away)} ago` : `in ${seconds(away)}`;
}

/** How long ago, with the exact time for the pointer and for screen readers. */
export function when(text) {
  return text ? h("time", {datetime: text, title: absolute(text)}, relative(text)) : kNone;
}

/** The exact time, with how long ago for the pointer. */
export function moment(text) {
  return text ? h("time", {datetime: text, title: relative(text)}, absolute(text)) : kNone;
}

export function day(text) {
  return text ? h("time", {datetime: text, title: absolute(text)}, kDay.format(new Date(text))) : kNone;
}

export function percent(done, total) {
  return total > 0 ? Math.min(100, Math.floor(100 * done / total)) : 0;
}

export function plural(count, one, many = one + "s") {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function short(id) {
  return id ? id.slice(0, 12) : kNone;
}

const kSizes = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
const kLengths = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1_000], ["ms", 1]];

function inUnits(value, units) {
  const found = value === 0 ? undefined : units.find(([, size]) => value % size === 0);
  return found ? `${value / found[1]}${found[0]}` : String(value);
}

function withUnit(text, units) {
  const [, digits, unit] = /^(\d+)\s*([a-z]*)$/i.exec(text) ?? [];
  const size = unit ? units.find(([name]) => name.toLowerCase() === unit.toLowerCase())?.[1] : 1;
  return digits === undefined || size === undefined ? null : Number(digits) * size;
}

/** As a reader types it: 16777216 is "16MiB", 600000 milliseconds are "10m". */
export const sizeText = (value) => inUnits(value, kSizes);
export const lengthText = (value) => inUnits(value, kLengths);
/** Of what a reader typed, or of a plain number; null: it cannot be read. */
export const sizeOf = (text) => withUnit(text, kSizes);
export const lengthOf = (text) => withUnit(text, kLengths);
