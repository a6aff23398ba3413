// Numbers, times and events as people read them.

const TONES = {
  good: ["succeeded", "approved", "compensated", "verified", "resumed", "manifest_approved"],
  bad: ["blocked", "failed", "denied", "compensation_failed", "verification_failed", "halted", "key_deleted"],
  warn: [
    "would_block",
    "uncertain",
    "unverified",
    "approval_expired",
    "approval_escalated",
    "purged",
    "delegation_revoked",
  ],
};
const TONE_OF = new Map(
  Object.entries(TONES).flatMap(([tone, events]) => events.map((event) => [event, tone])),
);

export const tone = (event) => TONE_OF.get(event) ?? "plain";

export const number = (value) => value.toLocaleString("en");

export const count = (value, word) => `${number(value)} ${word}${value === 1 ? "" : "s"}`;

/** UTC, because evidence is read in more than one place. */
export function time(ms) {
  const date = new Date(ms);
  if (!Number.isSafeInteger(ms) || Number.isNaN(date.getTime())) return String(ms);
  return date
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");
}

export function bytes(size) {
  const units = ["bytes", "KB", "MB", "GB"];
  let value = size;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export const shortHash = (hash) => (hash.length > 20 ? `${hash.slice(0, 10)}…${hash.slice(-6)}` : hash);
