/**
 * The service's own log on stderr: reloads, failed notifications, anchors, trace export. Each entry is one line without
 * credentials, and logging never throws into the caller.
 */
import { pino } from "pino";
import * as z from "zod";
import { redactSecrets } from "../rules/detect/secrets.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogLevel } from "./log-levels.ts";
import { type LogValue, type RedactText, scrubFields, scrubText } from "./scrub.ts";
import { fdSink, type LineSink } from "./sink.ts";

export const logSchema = z.strictObject({
  format: z.enum(LOG_FORMATS).default("json"),
  level: z.enum(LOG_LEVELS).default("info"),
});
export type LogSettings = z.infer<typeof logSchema>;

type LogFields = Readonly<Record<string, unknown>>;

export interface ServiceLogger {
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
  /** Returns a log that adds these fields to every line. */
  child(fields: LogFields): ServiceLogger;
  flush(): Promise<void>;
}

interface LoggerParts {
  /** Removes credentials from a text. Defaults to the built-in detector. */
  readonly redact?: RedactText;
  readonly now?: () => number;
  readonly sink?: LineSink;
}

export function createLogger(settings: Partial<LogSettings>, parts: LoggerParts = {}): ServiceLogger {
  const redact = parts.redact ?? redactSecrets;
  const sink = parts.sink ?? fdSink(2);
  const now = parts.now ?? Date.now;
  const pretty = settings.format === "pretty";
  const logger = pino(
    {
      level: settings.level ?? "info",
      base: null,
      formatters: { level: (label) => ({ level: label }) },
      timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
    },
    { write: (line) => sink.write(pretty ? prettyLine(line) : line) },
  );

  const at = (level: LogLevel, extra: LogFields) => (msg: string, fields?: LogFields) => {
    try {
      if (!logger.isLevelEnabled(level)) return;
      const clean = apart(scrubFields({ ...extra, ...fields }, redact));
      logger[level](clean, scrubText(msg, redact));
    } catch {
      // The log is a side channel: its failure must not affect the caller.
    }
  };
  const build = (extra: LogFields): ServiceLogger => ({
    debug: at("debug", extra),
    info: at("info", extra),
    warn: at("warn", extra),
    error: at("error", extra),
    child: (fields) => build({ ...extra, ...fields }),
    flush: () => sink.flush(),
  });
  return build({});
}

/** A log that writes nothing, for code that runs without a log. */
export const silentLogger: ServiceLogger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
  flush: () => Promise.resolve(),
};

/** Renames fields that would replace the line's own `level`, `time` or `msg`. */
function apart(fields: { [key: string]: LogValue }): { [key: string]: LogValue } {
  for (const name of ["level", "time", "msg"]) {
    if (!Object.hasOwn(fields, name)) continue;
    fields[`${name}_`] = fields[name]!;
    delete fields[name];
  }
  return fields;
}

/** Formats a line as `2026-01-01T00:00:00.000Z WARN message key=value`, and escapes everything that could break it. */
function prettyLine(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, LogValue>;
  const rest = Object.entries(fields).map(([key, value]) => `  ${printable(key)}=${printable(show(value))}`);
  return `${time} ${String(level).toUpperCase().padEnd(5)} ${printable(String(msg ?? ""))}${rest.join("")}\n`;
}

function show(value: LogValue): string {
  return typeof value === "string" && value !== "" && !/[\s="]/.test(value) ? value : JSON.stringify(value);
}

/** Control and bidirectional characters can forge a line or repaint a terminal. */
function printable(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
