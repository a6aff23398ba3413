/** The levels of MCP log messages, mildest first. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type McpLogLevel = (typeof LEVELS)[number];

export function isLogLevel(value: unknown): value is McpLogLevel {
  return (LEVELS as readonly unknown[]).includes(value);
}

/** Whether a message is as grave as what is wanted; one without a level is let through. */
export function reaches(level: unknown, wanted: McpLogLevel): boolean {
  return !isLogLevel(level) || LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

export function milder(a: McpLogLevel, b: McpLogLevel): McpLogLevel {
  return LEVELS.indexOf(a) <= LEVELS.indexOf(b) ? a : b;
}
