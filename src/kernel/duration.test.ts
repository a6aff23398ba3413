import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { formatDuration, parseDuration, parseSince } from "./duration.ts";

const NOW = Date.parse("2026-06-15T12:00:00Z");

describe("durations", () => {
  it.each([
    ["5ms", 5],
    ["30s", 30_000],
    ["10m", 600_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
    ["1w", 604_800_000],
  ])("%s", (text, ms) => {
    verifies("contract.duration.units");
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(["", "7", "-1d", "1.5h", "1e9d", "7 d", "7D", "1y", "99999999999d"])("refuses %j", (text) => {
    expect(() => parseDuration(text, "ttl")).toThrow(/^ttl: .*not a duration/);
  });

  it("reads since as a duration back, a date or a timestamp", () => {
    expect(parseSince("1d", NOW)).toBe(NOW - 86_400_000);
    expect(parseSince("2026-06-01", NOW)).toBe(Date.parse("2026-06-01T00:00:00Z"));
    expect(parseSince("2026-06-01T10:00", NOW)).toBe(Date.parse("2026-06-01T10:00:00Z"));
    expect(parseSince("2026-06-01T10:00:00+02:00", NOW)).toBe(Date.parse("2026-06-01T08:00:00Z"));
    expect(() => parseSince("yesterday", NOW)).toThrow("neither a duration");
    expect(() => parseSince("2026-13-01", NOW)).toThrow("neither a duration");
    for (const day of ["2026-02-30", "2025-02-29T10:00:00Z"])
      expect(() => parseSince(day, NOW), day).toThrow("neither");
    expect(parseSince("2024-02-29", NOW)).toBe(Date.UTC(2024, 1, 29));
  });

  it("shows the two largest units", () => {
    expect(formatDuration(3_725_000)).toBe("1h 2m");
    expect(formatDuration(12)).toBe("12ms");
  });
});
