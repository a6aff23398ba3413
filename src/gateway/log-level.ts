/** The levels of MCP log messages, mildest first. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type LogLevel = (typeof LEVELS)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return (LEVELS as readonly unknown[]).includes(value);
}

/** Whether a message is as grave as what is wanted; one without a level is let through. */
export function reaches(level: unknown, wanted: LogLevel): boolean {
  return !isLogLevel(level) || LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

export function milder(a: LogLevel, b: LogLevel): LogLevel {
  return LEVELS.indexOf(a) <= LEVELS.indexOf(b) ? a : b;
}
