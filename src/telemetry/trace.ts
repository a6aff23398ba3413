/**
 * Sends spans to an OTLP collector through the egress guard, fifty at a time or every five seconds. The queue is
 * bounded: a slow or broken collector costs a log line, never a call.
 */
import * as z from "zod";
import type { EgressClient, EgressResponse } from "../egress/egress.ts";
import { EgressRefusedError } from "../egress/refusal.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { withTimeout } from "../kernel/timeout.ts";
import type { ServiceLogger } from "./log.ts";
import { type OtlpResource, type OtlpSpan, otlpRequest } from "./otlp.ts";
import { opensSpan, SpanBuilder, type SpanRecord } from "./spans.ts";

export const otlpSchema = z.strictObject({
  endpoint: z.url({ protocol: /^https?$/ }),
  headers: z.record(z.string().min(1), z.string()).default({}),
});

export interface TraceSettings {
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly service_name?: string | undefined;
  readonly environment?: string | null | undefined;
}

interface TraceParts {
  readonly egress: Pick<EgressClient, "request">;
  readonly env: Pick<RuntimeEnv, "sleep" | "elapsed">;
  readonly log: ServiceLogger;
}

interface TraceStats {
  readonly queued: number;
  readonly ok: number;
  readonly failed: number;
  readonly dropped: number;
}

export interface SpanTracer {
  /** Queues appended records. Returns at once and never throws. */
  record(records: readonly SpanRecord[], traceparent?: string): void;
  stats(): TraceStats;
  /** Sends the rest, within the deadline, and stops. */
  close(deadline_ms: number): Promise<void>;
}

const MAX_QUEUED = 5_000;
/** Records that only open spans do not start the export. Beyond this number, they become spans at once. */
const BUILD_AT = 500;
const MAX_BACKOFF_MS = 60_000;
const REPEAT_LOG_MS = 60_000;
/** The statuses that OTLP allows to retry. A retry of any other would fail again. */
const RETRYABLE = new Set([408, 429, 502, 503, 504]);

export function createTracer(settings: TraceSettings, parts: TraceParts): SpanTracer {
  return new Exporter(settings, parts);
}

class Exporter implements SpanTracer {
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private readonly resource: OtlpResource;
  private readonly parts: TraceParts;
  private readonly spans = new SpanBuilder();
  /** Raw records. The export turns them into spans, outside the call that wrote them. */
  private records: SpanRecord[] = [];
  /** The number of records that will complete a span. */
  private ready = 0;
  private queue: OtlpSpan[] = [];
  private readonly counts = { ok: 0, failed: 0, dropped: 0 };
  private wake = new AbortController();
  private readonly stop = new AbortController();
  private pump: Promise<void> | null = null;
  private closing = false;
  private failures = 0;
  private lastLogged = Number.NEGATIVE_INFINITY;

  constructor(settings: TraceSettings, parts: TraceParts) {
    this.url = tracesUrl(settings.endpoint);
    this.headers = { ...settings.headers, "content-type": "application/json" };
    this.resource = {
      service_name: settings.service_name ?? "svc",
      environment: settings.environment ?? null,
    };
    this.parts = parts;
  }

  record(records: readonly SpanRecord[], traceparent?: string): void {
    try {
      if (this.closing) return;
      for (const record of records) {
        if (this.records.length + this.queue.length >= MAX_QUEUED) {
          this.counts.dropped++;
          this.complain("trace queue is full, spans dropped", `${this.counts.dropped} so far`);
          continue;
        }
        if (!opensSpan(record.event)) this.ready++;
        this.records.push(traceparent === undefined ? record : { ...record, traceparent });
      }
      if (this.records.length >= BUILD_AT) this.build();
      this.start();
    } catch (error) {
      this.complain("spans could not be built", messageOf(error));
    }
  }

  stats(): TraceStats {
    return { queued: this.waiting(), ...this.counts };
  }

  async close(deadline_ms: number): Promise<void> {
    if (this.closing) return;
    this.build();
    this.queue.push(...this.spans.takeOpen());
    this.closing = true;
    this.rouse();
    this.start();
    await withTimeout(Promise.resolve(this.pump), deadline_ms, () => this.stop.abort(), this.parts);
    if (this.queue.length > 0) {
      this.parts.log.warn("trace export stopped with spans unsent", { spans: this.queue.length });
    }
  }

  private waiting(): number {
    return this.queue.length + this.ready;
  }

  private build(): void {
    const records = this.records;
    this.records = [];
    this.ready = 0;
    for (const record of records) this.queue.push(...this.spans.add(record));
  }

  /** Starts the export loop, which runs only while there is something to send. An idle process has no timer. */
  private start(): void {
    if (this.waiting() === 0) return;
    if (this.waiting() >= SERVICE_LIMITS.trace_batch && this.failures === 0) this.rouse();
    this.pump ??= this.run();
  }

  /** Ends the wait. Without a reason, abort would build an exception with a stack trace on every call. */
  private rouse(): void {
    if (!this.wake.signal.aborted) this.wake.abort("more to send");
  }

  private async run(): Promise<void> {
    while (this.waiting() > 0 && !this.stop.signal.aborted) {
      const full = this.waiting() >= SERVICE_LIMITS.trace_batch && this.failures === 0;
      if (!full && !this.closing) await this.wait();
      this.build();
      const batch = this.queue.splice(0, SERVICE_LIMITS.trace_batch);
      const again = batch.length > 0 && (await this.send(batch));
      if (!again) continue;
      if (this.closing) this.counts.failed += batch.length;
      else this.queue = [...batch, ...this.queue];
    }
    this.pump = null;
  }

  private async wait(): Promise<void> {
    this.wake = new AbortController();
    const ms = Math.min(SERVICE_LIMITS.trace_interval_ms * 2 ** Math.min(this.failures, 6), MAX_BACKOFF_MS);
    await this.parts.env.sleep(ms, this.wake.signal).catch(() => undefined);
  }

  /** Sends a batch. Returns whether it is worth another attempt. */
  private async send(batch: readonly OtlpSpan[]): Promise<boolean> {
    let problem: string;
    let retry: boolean;
    try {
      const response = await this.parts.egress.request(this.url, {
        method: "POST",
        headers: this.headers,
        secret_headers: Object.keys(this.headers),
        body: otlpRequest(this.resource, batch),
        timeout_ms: SERVICE_LIMITS.egress_timeout_ms,
        max_bytes: 64 * 1024,
        cut: true,
        signal: this.stop.signal,
      });
      if (response.status >= 200 && response.status < 300) {
        this.succeeded(batch.length, response);
        return false;
      }
      problem = `the collector answered ${response.status}`;
      retry = RETRYABLE.has(response.status);
    } catch (error) {
      problem = messageOf(error);
      retry = !(error instanceof EgressRefusedError);
    }
    this.failures++;
    if (!retry) this.counts.failed += batch.length;
    this.complain("trace export failed", problem);
    return retry;
  }

  private succeeded(sent: number, response: EgressResponse): void {
    this.counts.ok += sent;
    if (this.failures > 0) this.parts.log.info("trace export works again", { failures: this.failures });
    this.failures = 0;
    this.lastLogged = Number.NEGATIVE_INFINITY;
    const rejected = rejectedSpans(response.body);
    if (rejected > 0) this.complain("the collector rejected spans", String(rejected));
  }

  /** Logs a warning when a problem begins, and once per minute while it lasts. */
  private complain(msg: string, problem: string): void {
    const now = this.parts.env.elapsed();
    if (now - this.lastLogged < REPEAT_LOG_MS) return;
    this.lastLogged = now;
    this.parts.log.warn(msg, { problem, queued: this.queue.length });
  }
}

/** Returns `<endpoint>/v1/traces`, or the endpoint itself if it is already complete. */
function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/(?<!\/)\/+$/, "");
  return base.endsWith("/v1/traces") ? base : `${base}/v1/traces`;
}

function rejectedSpans(body: Uint8Array): number {
  try {
    const answer = JSON.parse(Buffer.from(body).toString("utf8")) as {
      partialSuccess?: { rejectedSpans?: unknown };
    };
    return Number(answer.partialSuccess?.rejectedSpans ?? 0) || 0;
  } catch {
    return 0;
  }
}
