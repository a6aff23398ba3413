/** Levels of MCP log messages, least severe first. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;
export type McpLogLevel = (typeof LEVELS)[number];

export function isLogLevel(value: unknown): value is McpLogLevel {
  return (LEVELS as readonly unknown[]).includes(value);
}

/** Whether a message is severe enough. Messages without a level always pass. */
export function meetsLevel(level: unknown, wanted: McpLogLevel): boolean {
  return !isLogLevel(level) || LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

export function lowerLevel(a: McpLogLevel, b: McpLogLevel): McpLogLevel {
  return LEVELS.indexOf(a) <= LEVELS.indexOf(b) ? a : b;
}
