/** The rows of what runs beside the decisions: rollback, capture, anchors, egress, notifications, telemetry. */
import * as z from "zod";
import { tryDuration } from "../../kernel/duration.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../../telemetry/log-levels.ts";
import { maskNamed, maskUrl, maskValues } from "../mask.ts";
import {
  choiceRow,
  durationRow,
  locatePath,
  numberRow,
  pathSchema,
  row,
  section,
  switchRow,
  textRow,
  textSchema,
  urlSchema,
} from "../row.ts";

const anchorSink = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("file"), path: pathSchema }),
  z.strictObject({ type: z.literal("webhook"), url: urlSchema, secret: textSchema.nullable().default(null) }),
  z.strictObject({ type: z.literal("witness"), url: urlSchema, key: textSchema.max(4_096) }),
]);
export type AnchorSink = z.infer<typeof anchorSink>;

const EXPORT_FORMATS = ["ocsf", "cef", "jsonl"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
const exportFormat = z.enum(EXPORT_FORMATS).default("jsonl");
const exportSink = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("file"), path: pathSchema, format: exportFormat }),
  z.strictObject({
    type: z.literal("webhook"),
    url: urlSchema,
    secret: textSchema.nullable().default(null),
    format: exportFormat,
  }),
  z.strictObject({
    type: z.literal("syslog"),
    host: textSchema.max(253),
    port: z.number().int().min(1).max(65_535).default(514),
    protocol: z.enum(["tcp", "udp"]).default("tcp"),
    format: exportFormat,
  }),
]);
export type ExportSink = z.infer<typeof exportSink>;

/** `<name>+<key id>+<key>`, as C2SP writes the keys of those who sign notes. */
export function isVerifierKey(text: string): boolean {
  return /^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*\s*$/.test(text);
}

/** A witness's key may be written out; everything else that has no place yet is a path. */
function locateSink(sink: AnchorSink, base: string): AnchorSink {
  if (sink.type === "file") return { ...sink, path: locatePath(sink.path, base) };
  if (sink.type === "webhook" || isVerifierKey(sink.key)) return sink;
  return { ...sink, key: locatePath(sink.key, base) };
}

const hostPattern = textSchema.refine(
  (text) => /^[^\s/:@]+$|^\[?[0-9a-fA-F:.]+\]?$/.test(text),
  "is not a host pattern; write only the host, such as hooks.example.com or *.example.com",
);

/** What every channel has; the rest is the business of its kind, whose schema the caller may pass in. */
export interface ChannelSettings {
  name: string;
  type: string;
  [field: string]: Json;
}
const channels = z
  .array(z.looseObject({ name: textSchema.max(64), type: textSchema.max(64) }))
  .max(100)
  .superRefine((list, context) => {
    const seen = new Set<string>();
    for (const [i, { name }] of list.entries()) {
      if (seen.has(name))
        context.addIssue({ code: "custom", path: [i, "name"], message: "another channel has this name" });
      seen.add(name);
    }
  });

/** The environment variable counts days; a `${NAME}` in the file still means a duration. */
function wholeDays(text: string): string {
  if (!/^\d{1,6}$/.test(text)) {
    if (tryDuration(text) !== undefined) return text;
    throw invalid("must be a whole number of days, such as 7");
  }
  return `${text}d`;
}

function requestLog(text: string): boolean {
  if (text !== "json" && text !== "off") throw invalid("must be json or off");
  return text === "json";
}

export const OPERATIONS_ROWS = {
  rollback: section("The commands of rollback jobs; they are run without a shell.", {
    compensator_cmd: textRow({
      env: "SVC_COMPENSATOR_CMD",
      flag: "compensator-cmd",
      about: "Runs a compensation: gets the call as JSON on its standard input.",
    }),
    reader_cmd: textRow({
      env: "SVC_READER_CMD",
      flag: "reader-cmd",
      about: "Runs a read-back: gets {tool, arguments}, prints the tool's JSON result.",
    }),
    timeout: durationRow(LIMITS.compensation_timeout_ms, 1, {
      about: "How long one of these commands may take.",
    }),
  }),
  drills: section("Where calls may be made, and undone, only to prove that they can be.", {
    environments: row<string[]>({
      type: "list of environments",
      schema: z.array(z.string().min(1).max(256)).max(100),
      default: [],
      about: "Drills run only where `environment` is one of these; nowhere by default.",
    }),
  }),
  capture: section("Keeps redacted arguments and results for simulation and replay.", {
    enabled: switchRow({ env: "SVC_CAPTURE", about: "Captures calls." }),
    ttl: durationRow(LIMITS.capture_ttl_ms, 1_000, {
      env: "SVC_CAPTURE_TTL_DAYS",
      fromText: (text) => wholeDays(text),
      about: "How long a captured call is kept; the environment variable counts days.",
    }),
    redact_pii: switchRow({ about: "Replaces personal data before anything is written." }, true),
  }),
  anchor: section("Publishes the ledger's head where this machine cannot change it.", {
    sinks: row<AnchorSink[]>({
      type: "list of sinks",
      schema: z.array(anchorSink).max(32),
      default: [],
      about:
        "`{type: file, path}`, `{type: webhook, url, secret}` or `{type: witness, url, key}`; a witness's `key` is its verifier key, or a file with it or with its public key.",
      locate: (sinks, base) => sinks.map((sink) => locateSink(sink, base)),
      mask: maskNamed,
    }),
    interval: durationRow(LIMITS.anchor_interval_ms, 1_000, {
      about: "How often; once at the start as well.",
    }),
  }),
  export: section("Streams the ledger to where an organisation keeps its logs.", {
    sinks: row<ExportSink[]>({
      type: "list of sinks",
      schema: z.array(exportSink).max(32) as unknown as z.ZodType<ExportSink[]>,
      default: [],
      about:
        "`{type: file, path}`, `{type: webhook, url, secret}` or `{type: syslog, host, port, protocol: tcp or udp}`, each with `format`: ocsf, cef or jsonl (the default).",
      locate: (sinks, base) =>
        sinks.map((sink) => (sink.type === "file" ? { ...sink, path: locatePath(sink.path, base) } : sink)),
      mask: maskNamed,
    }),
  }),
  egress: section("What may be reached from here; cloud metadata addresses never.", {
    allow: row<string[] | undefined>({
      type: "list of host patterns",
      schema: z.array(hostPattern).max(1_000),
      default: undefined,
      shown_default: "any host",
      about: "The hosts that may be reached; an empty list lets nothing out.",
    }),
    block_private: switchRow({ about: "Refuses loopback, private and link-local addresses." }),
    region: row<string | null>({
      type: "text",
      schema: textSchema.max(64),
      default: null,
      about: "A label for refusals, anchors and reports.",
    }),
  }),
  notifications: section("Who is told of approvals, alerts and deletions.", {
    channels: row<ChannelSettings[]>({
      type: "list of channels",
      schema: channels as unknown as z.ZodType<ChannelSettings[]>,
      default: [],
      about:
        "Each has a `name`, a `type` (slack, teams, pagerduty, opsgenie, smtp, webhook), its own keys, and `events`.",
      mask: maskNamed,
    }),
    approval_webhook: row<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      secret: true,
      env: "SVC_APPROVAL_WEBHOOK",
      about: "A single webhook for approval requests, beside the channels.",
      mask: (url) => (url === null ? null : maskUrl(url)),
    }),
  }),
  alerts: section("When alerts are raised and repeated.", {
    remind: durationRow(LIMITS.alert_remind_ms, 1_000, { about: "How often a lasting alert is sent again." }),
    denial_spike: numberRow(z.number().int().min(1).max(1_000_000), LIMITS.denial_spike, {
      about:
        "Refused calls in 15 minutes that make a denial spike; calls that wait for approval do not count.",
    }),
    undo_closing: durationRow(LIMITS.undo_closing_ms, 1_000, {
      about:
        "How long before an undo stops working its alert is raised; later where more than a tenth of the undo's time is left.",
    }),
  }),
  probe: section("Tries by itself whether the guarantees hold (svc probe).", {
    interval: durationRow(0, 60_000, {
      shown_default: "off",
      about: "How often the server probes itself, such as 1h; off unless it is set.",
    }),
  }),
  log: section("The engine's log on stderr, and the request log on stdout.", {
    format: choiceRow(LOG_FORMATS, "json", { env: "SVC_LOG_FORMAT", about: "How lines are written." }),
    level: choiceRow(LOG_LEVELS, "info", {
      env: "SVC_LOG_LEVEL",
      about: "The least important level that is written.",
    }),
    requests: switchRow({
      env: "SVC_LOG",
      fromText: (text) => requestLog(text),
      type: "true or false (`json` or `off` in the environment)",
      about: "Writes one JSON line for each request to stdout.",
    }),
  }),
  otlp: section("Trace export over OTLP/HTTP with JSON.", {
    endpoint: row<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      env: "SVC_OTLP_ENDPOINT",
      about: "The collector; spans go to `<endpoint>/v1/traces`.",
      mask: (url) => (url === null ? null : maskUrl(url)),
    }),
    headers: row<Record<string, string>>({
      type: "mapping of header to value",
      schema: z.record(z.string().min(1), textSchema),
      default: {},
      secret: true,
      about: "Headers for the collector.",
      mask: maskValues,
    }),
  }),
} as const;
