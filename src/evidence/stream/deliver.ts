/**
 * Delivers a batch of formatted records to a sink. Resolves once the sink has them, as far as its protocol can tell.
 */
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { hostname } from "node:os";
import { maskUrl } from "../../config/mask.ts";
import type { ExportSink } from "../../config/sections/operations.ts";
import type { CheckedHost, EgressClient } from "../../egress/egress.ts";
import { SvcError } from "../../kernel/errors.ts";
import { hmacHex } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { appendLine } from "../anchors/sinks.ts";
import { type StreamRecord, severityOf } from "./formats.ts";

export interface FormattedRecord extends StreamRecord {
  /** The record in the sink's format. */
  text: string;
}

const SIGNATURE = "x-svc-signature";
/** Facility "log audit" of RFC 5424. */
const FACILITY = 13;
/** Maps severities to syslog: informational, notice, warning, alert. */
const SYSLOG_SEVERITY = { 1: 6, 2: 5, 3: 4, 4: 1 } as const;

/** Name of a sink in logs, without secrets. */
export function sinkName(sink: ExportSink): string {
  if (sink.type === "file") return sink.path;
  return sink.type === "webhook" ? maskUrl(sink.url) : `${sink.protocol}://${sink.host}:${sink.port}`;
}

export async function deliverBatch(
  sink: ExportSink,
  batch: readonly FormattedRecord[],
  egress: EgressClient,
): Promise<void> {
  if (sink.type === "file") return appendLine(sink.path, batch.map(({ text }) => text).join("\n"));
  if (sink.type === "webhook") return post(sink, batch, egress);
  const place = await egress.checkHost(sink.host, sink.port);
  const messages = batch.map((one) => Buffer.from(syslogMessage(one)));
  return sink.protocol === "udp" ? sendDatagrams(place, messages) : sendStream(place, messages);
}

async function post(
  sink: Extract<ExportSink, { type: "webhook" }>,
  batch: readonly FormattedRecord[],
  egress: EgressClient,
): Promise<void> {
  const body = batch.map(({ text }) => `${text}\n`).join("");
  const headers: Record<string, string> = {
    "content-type": sink.format === "cef" ? "text/plain; charset=utf-8" : "application/x-ndjson",
    "x-svc-first-seq": String(batch[0]!.record.seq),
    "x-svc-last-seq": String(batch.at(-1)!.record.seq),
  };
  if (sink.secret !== null) headers[SIGNATURE] = `sha256=${hmacHex(sink.secret, body)}`;
  const { status } = await egress.request(sink.url, {
    method: "POST",
    headers,
    body,
    timeout_ms: SERVICE_LIMITS.egress_timeout_ms,
    secret_headers: [SIGNATURE],
    max_bytes: 65_536,
    cut: true,
  });
  if (status < 200 || status > 299) throw new SvcError("delivery_failed", `the webhook answered ${status}`);
}

/** Formats an RFC 5424 message. The ledger position is in the structured data, for every record format. */
function syslogMessage({ record, text }: FormattedRecord): string {
  const { seq, ts_ms, event, hash } = record;
  const at = new Date(ts_ms);
  const time = Number.isNaN(at.getTime()) ? "-" : at.toISOString();
  const priority = FACILITY * 8 + SYSLOG_SEVERITY[severityOf(event)];
  const data = `[svc@32473 seq="${seq}" hash="${hash}"]`;
  return `<${priority}>1 ${time} ${hostname().replace(/[^!-~]/g, "") || "-"} svc - ${event} ${data} ${text}`;
}

/**
 * Sends over TCP with octet counting (RFC 6587). Syslog has no acknowledgements, but a receiver that closes its side
 * after ours has read everything. So each batch has its own connection and counts as delivered if that closes cleanly.
 */
function sendStream({ address, port }: CheckedHost, messages: readonly Buffer[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port });
    socket.setTimeout(SERVICE_LIMITS.egress_timeout_ms, () =>
      socket.destroy(new Error("the syslog receiver did not accept the records in time")),
    );
    socket.once("error", reject);
    socket.once("close", (failed) => (failed ? undefined : resolve()));
    socket.once("connect", () => {
      const parts = messages.flatMap((message) => [Buffer.from(`${message.length} `), message]);
      socket.end(Buffer.concat(parts));
    });
    socket.resume();
  });
}

/** Sends over UDP. Lost datagrams cannot be detected. */
async function sendDatagrams(
  { address, port, family }: CheckedHost,
  messages: readonly Buffer[],
): Promise<void> {
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  try {
    for (const message of messages) {
      await new Promise<void>((resolve, reject) =>
        socket.send(message, port, address, (error) => (error ? reject(error) : resolve())),
      );
    }
  } finally {
    socket.close();
  }
}
