// Numbers and dates as the reader writes them.
import { language } from "./words";

const made = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>();

function once<T extends Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>(
  name: string,
  make: (locale: string) => T,
): T {
  const known = `${language.value} ${name}`;
  let found = made.get(known);
  if (!found) made.set(known, (found = make(language.value)));
  return found as T;
}

export const number = (value: number, digits = 0): string =>
  once(`number ${digits}`, (locale) =>
    new Intl.NumberFormat(locale, { maximumFractionDigits: digits }),
  ).format(value);

export const percent = (value: number): string =>
  once("percent", (locale) =>
    new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }),
  ).format(value);

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const name = UNITS[unit] ?? "byte";
  return once(`bytes ${name}`, (locale) =>
    new Intl.NumberFormat(locale, {
      style: "unit",
      unit: name,
      maximumFractionDigits: unit > 1 ? 1 : 0,
    }),
  ).format(value);
}

export const moment = (at: string): string =>
  once("moment", (locale) =>
    new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }),
  ).format(new Date(at));

export const clock = (at: string): string =>
  once("clock", (locale) => new Intl.DateTimeFormat(locale, { timeStyle: "medium" })).format(
    new Date(at),
  );

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [30, "day"],
  [12, "month"],
  [Infinity, "year"],
];

/** How long ago, in the largest unit that is not less than one. */
export function ago(at: string): string {
  let value = (new Date(at).getTime() - Date.now()) / 1000;
  for (const [size, unit] of STEPS) {
    if (Math.abs(value) < size) {
      return once("ago", (locale) => new Intl.RelativeTimeFormat(locale, { numeric: "auto" })).format(
        Math.trunc(value),
        unit,
      );
    }
    value /= size;
  }
  return moment(at);
}
