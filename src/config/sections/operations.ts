/** Settings of supporting services: rollback, capture, anchors, egress, notifications, telemetry. */
import * as z from "zod";
import { tryDuration } from "../../kernel/duration.ts";
import { invalidError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../../telemetry/log-levels.ts";
import { maskNamed, maskUrl, maskValues } from "../mask.ts";
import {
  choiceRow,
  durationRow,
  locatePath,
  numberRow,
  pathSchema,
  settingRow,
  settingSection,
  switchRow,
  textRow,
  textSchema,
  urlSchema,
} from "../setting-row.ts";

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

/** Whether the text is a C2SP note verifier key: `<name>+<key id>+<key>`. */
export function isVerifierKey(text: string): boolean {
  return /^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*\s*$/.test(text);
}

/** Makes the sink's paths absolute. A witness's key may be a verifier key instead of a path. */
function locateSink(sink: AnchorSink, base: string): AnchorSink {
  if (sink.type === "file") return { ...sink, path: locatePath(sink.path, base) };
  if (sink.type === "webhook" || isVerifierKey(sink.key)) return sink;
  return { ...sink, key: locatePath(sink.key, base) };
}

const hostPattern = textSchema.refine(
  (text) => /^[^\s/:@]+$|^\[?[0-9a-fA-F:.]+\]?$/.test(text),
  "is not a host pattern; use only the host, such as hooks.example.com or *.example.com",
);

/** Fields that all channels share. Each type has its own schema for the others, which the caller can pass in. */
export interface ChannelSettings {
  name: string;
  type: string;
  [field: string]: JsonValue;
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

/** Reads the environment variable, which counts days. A `${NAME}` in the file still means a duration. */
function wholeDays(text: string): string {
  if (!/^\d{1,6}$/.test(text)) {
    if (tryDuration(text) !== undefined) return text;
    throw invalidError("must be a whole number of days, such as 7");
  }
  return `${text}d`;
}

function requestLog(text: string): boolean {
  if (text !== "json" && text !== "off") throw invalidError("must be json or off");
  return text === "json";
}

export const OPERATIONS_ROWS = {
  rollback: settingSection("Commands of rollback jobs. They run without a shell.", {
    compensator_cmd: textRow({
      env: "SVC_COMPENSATOR_CMD",
      flag: "compensator-cmd",
      about: "Command that runs each undo. Receives the call as JSON on stdin.",
    }),
    reader_cmd: textRow({
      env: "SVC_READER_CMD",
      flag: "reader-cmd",
      about:
        "Command that reads state for verification. Receives `{tool, arguments}` on stdin and prints the JSON result.",
    }),
    timeout: durationRow(SERVICE_LIMITS.compensation_timeout_ms, 1, {
      about: "Time limit of each command.",
    }),
  }),
  drills: settingSection("Environments in which drills can make and undo test calls.", {
    environments: settingRow<string[]>({
      type: "list of environments",
      schema: z.array(z.string().min(1).max(256)).max(100),
      default: [],
      about: "Drills run only if `environment` is in this list. Empty by default.",
    }),
  }),
  capture: settingSection("Stores redacted arguments and results for simulation and replay.", {
    enabled: switchRow({ env: "SVC_CAPTURE", about: "Enables capture." }),
    ttl: durationRow(SERVICE_LIMITS.capture_ttl_ms, 1_000, {
      env: "SVC_CAPTURE_TTL_DAYS",
      fromText: (text) => wholeDays(text),
      about: "How long captured calls are stored. The environment variable is a number of days.",
    }),
    redact_pii: switchRow({ about: "Replaces personal data before calls are written." }, true),
  }),
  anchor: settingSection("Publishes the ledger's head where this machine cannot change it.", {
    sinks: settingRow<AnchorSink[]>({
      type: "list of sinks",
      schema: z.array(anchorSink).max(32),
      default: [],
      about:
        "`{type: file, path}`, `{type: webhook, url, secret}` or `{type: witness, url, key}`, with a verifier key or its file.",
      locate: (sinks, base) => sinks.map((sink) => locateSink(sink, base)),
      mask: maskNamed,
    }),
    interval: durationRow(SERVICE_LIMITS.anchor_interval_ms, 1_000, {
      about: "How often to publish. Also publishes at start.",
    }),
  }),
  export: settingSection("Streams the ledger to log systems.", {
    sinks: settingRow<ExportSink[]>({
      type: "list of sinks",
      schema: z.array(exportSink).max(32) as z.ZodType<ExportSink[]>,
      default: [],
      about:
        "`{type: file, path}`, `{type: webhook, url, secret}` or `{type: syslog, host, port, protocol: tcp or udp}`, each with `format`: ocsf, cef or jsonl (the default).",
      locate: (sinks, base) =>
        sinks.map((sink) => (sink.type === "file" ? { ...sink, path: locatePath(sink.path, base) } : sink)),
      mask: maskNamed,
    }),
  }),
  egress: settingSection("Hosts that this server can reach. Cloud metadata addresses are always blocked.", {
    allow: settingRow<string[] | undefined>({
      type: "list of host patterns",
      schema: z.array(hostPattern).max(1_000),
      default: undefined,
      shown_default: "any host",
      about: "Allowed hosts. An empty list blocks all.",
    }),
    block_private: switchRow({ about: "Blocks loopback, private and link-local addresses." }),
    region: settingRow<string | null>({
      type: "text",
      schema: textSchema.max(64),
      default: null,
      about: "Label for rejected connections, anchors and reports.",
    }),
  }),
  notifications: settingSection("Notifications of approvals, alerts and deletions.", {
    channels: settingRow<ChannelSettings[]>({
      type: "list of channels",
      schema: channels as z.ZodType<ChannelSettings[]>,
      default: [],
      about:
        "Each has a `name`, a `type` (slack, teams, pagerduty, opsgenie, smtp, webhook), its own keys, and `events`.",
      mask: maskNamed,
    }),
    approval_webhook: settingRow<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      secret: true,
      env: "SVC_APPROVAL_WEBHOOK",
      about: "A webhook for approval requests, in addition to the channels.",
      mask: (url) => (url === null ? null : maskUrl(url)),
    }),
  }),
  alerts: settingSection("Thresholds and reminders of alerts.", {
    remind: durationRow(SERVICE_LIMITS.alert_remind_ms, 1_000, {
      about: "How often an active alert is sent again.",
    }),
    denial_spike: numberRow(z.number().int().min(1).max(1_000_000), SERVICE_LIMITS.denial_spike, {
      about: "Refused calls in 15 minutes that raise an alert. Calls that wait for approval do not count.",
    }),
    undo_closing: durationRow(SERVICE_LIMITS.undo_closing_ms, 1_000, {
      about: "How long before an undo expires its alert is raised, once a tenth of its time is left.",
    }),
  }),
  probe: settingSection("Tests the guarantees automatically (svc probe).", {
    interval: durationRow(0, 60_000, {
      shown_default: "off",
      about: "How often the server runs the probe, such as `1h`. Off by default.",
    }),
  }),
  log: settingSection("Engine log on stderr, and request log on stdout.", {
    format: choiceRow(LOG_FORMATS, "json", { env: "SVC_LOG_FORMAT", about: "Format of log lines." }),
    level: choiceRow(LOG_LEVELS, "info", {
      env: "SVC_LOG_LEVEL",
      about: "Minimum level to log.",
    }),
    requests: switchRow({
      env: "SVC_LOG",
      fromText: (text) => requestLog(text),
      type: "true or false (`json` or `off` in the environment)",
      about: "Writes a JSON line for each request to stdout.",
    }),
  }),
  otlp: settingSection("Trace export over OTLP/HTTP with JSON.", {
    endpoint: settingRow<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      env: "SVC_OTLP_ENDPOINT",
      about: "URL of the collector. Spans go to `<endpoint>/v1/traces`.",
      mask: (url) => (url === null ? null : maskUrl(url)),
    }),
    headers: settingRow<Record<string, string>>({
      type: "mapping of header to value",
      schema: z.record(z.string().min(1), textSchema),
      default: {},
      secret: true,
      about: "Headers for the collector.",
      mask: maskValues,
    }),
  }),
} as const;
