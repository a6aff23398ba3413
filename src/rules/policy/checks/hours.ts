/**
 * Hours and weekdays in a time zone. Intl supplies the zone's rules, daylight saving included; this file only asks for
 * local clock time, never for offsets.
 */

export const WEEKDAY_NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type WeekdayName = (typeof WEEKDAY_NAMES)[number];

/** Minutes since midnight. If `to` is below `from`, the range ends on the next day. */
export interface HourRange {
  from: number;
  to: number;
}

const RANGE = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)$/;
const MIDNIGHT = 24 * 60;

function parseRange(source: string): HourRange | string {
  const match = RANGE.exec(source.trim());
  if (match === null)
    return `${JSON.stringify(source.trim())} is not a range of hours; write it as 09:00-17:00`;
  const from = Number(match[1]) * 60 + Number(match[2]);
  const to = Number(match[3]) * 60 + Number(match[4]);
  if (to > MIDNIGHT) return "no day has hours after 24:00";
  if (from === to) return "begins and ends at the same minute; write 00:00-24:00 for the whole day";
  return { from, to };
}

export function hoursProblem(source: string): string | null {
  for (const part of source.split(",")) {
    const range = parseRange(part);
    if (typeof range === "string") return range;
  }
  return null;
}

/** Parses `09:00-12:00, 13:00-17:00`, which `hoursProblem` has already checked. */
export function parseHours(source: string): HourRange[] {
  return source
    .split(",")
    .map(parseRange)
    .filter((range) => typeof range !== "string");
}

const ZONE = /^(?:UTC|GMT|[A-Za-z]+(?:\/[A-Za-z0-9_+-]+){1,2})$/;

export function zoneProblem(name: string): string | null {
  try {
    if (ZONE.test(name)) formatter(name);
    return ZONE.test(name)
      ? null
      : `${JSON.stringify(name)} is not a time zone; write an IANA name such as Europe/Berlin`;
  } catch {
    return `${JSON.stringify(name)} is not a known time zone; write an IANA name such as Europe/Berlin`;
  }
}

const formatters = new Map<string, Intl.DateTimeFormat>();

/** Cached, because creating a formatter costs a hundred times as much as using it. */
function formatter(zone: string): Intl.DateTimeFormat {
  let made = formatters.get(zone);
  if (made === undefined) {
    made = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    // Bounds the cache: policies change, and untrusted ones can name every zone.
    if (formatters.size > 1_000) formatters.clear();
    formatters.set(zone, made);
  }
  return made;
}

interface WallClock {
  /** 0 is Monday. */
  day: number;
  minute: number;
}

export function wallClock(zone: string, now_ms: number): WallClock {
  let day = 0;
  let minute = 0;
  for (const { type, value } of formatter(zone).formatToParts(now_ms)) {
    if (type === "weekday") day = WEEKDAY_NAMES.indexOf(value.toLowerCase() as WeekdayName);
    else if (type === "hour") minute += Number(value) * 60;
    else if (type === "minute") minute += Number(value);
  }
  return { day, minute };
}

/** A range past midnight belongs to the day on which it starts. */
export function isOpen(clock: WallClock, days: ReadonlySet<number>, ranges: readonly HourRange[]): boolean {
  const yesterday = (clock.day + 6) % 7;
  return ranges.some(({ from, to }) => {
    if (from < to) return days.has(clock.day) && clock.minute >= from && clock.minute < to;
    return (days.has(clock.day) && clock.minute >= from) || (days.has(yesterday) && clock.minute < to);
  });
}
