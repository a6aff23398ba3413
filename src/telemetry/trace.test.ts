import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { afterEach, describe, expect, it } from "vitest";
import { type Answer, startReceiver } from "../../test/golden/notify/support/receivers.ts";
import { until } from "../../test/support/until.ts";
import { verifies } from "../../test/support/verifies.ts";
import { createEgress, type EgressRequest } from "../egress/egress.ts";
import { type RuntimeEnv, systemEnv } from "../kernel/env.ts";
import { createLogger, silentLogger } from "./log.ts";
import { lineSink } from "./sink.ts";
import { SpanBuilder, type SpanRecord, traceId } from "./spans.ts";
import { createTracer, otlpSchema, type TraceSettings } from "./trace.ts";

const RUN = "run_01";
let seq = 0;
const record = (event: SpanRecord["event"], more: Partial<SpanRecord> = {}): SpanRecord => {
  const n = seq++;
  return {
    seq: n,
    ts_ms: 1_767_225_600_000 + n * 10,
    event,
    hash: `h${n}`,
    actor: "bot",
    run_id: RUN,
    step: 0,
    tool: "crm.add",
    ...more,
  };
};
const attributes = (span: { attributes: { key: string; value: object }[] }) =>
  Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe("spans", () => {
  it("makes one span of a step, from intended to its outcome", () => {
    verifies(
      "ops.trace.attr-run-and-step",
      "ops.trace.attr-tool-and-actor",
      "ops.trace.attr-effect",
      "ops.trace.attr-event",
      "ops.trace.attr-seq",
      "ops.trace.no-values",
    );
    const spans = new SpanBuilder();
    const start = record("intended", { effect: "compensable", reason: "new customer" });
    expect(spans.add(start)).toEqual([]);
    const end = record("succeeded", { detail: "resolved by ann: seen" });
    const [span] = spans.add(end);
    expect(span).toMatchObject({
      traceId: traceId({ run_id: RUN, hash: "" }),
      name: "execute_tool crm.add",
      startTimeUnixNano: `${start.ts_ms}000000`,
      endTimeUnixNano: `${end.ts_ms}000000`,
      status: { code: 1 },
    });
    expect(attributes(span!)).toEqual({
      "gen_ai.agent.name": "bot",
      "gen_ai.conversation.id": RUN,
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.call.id": `${RUN}/0`,
      "gen_ai.tool.name": "crm.add",
      "gen_ai.tool.type": "function",
      "svc.run_id": RUN,
      "svc.step": 0,
      "svc.tool": "crm.add",
      "svc.actor": "bot",
      "svc.effect": "compensable",
      "svc.event": "succeeded",
      "svc.reason": "new customer",
      "svc.detail": "resolved by ann: seen",
      "svc.seq.start": start.seq,
      "svc.seq.end": end.seq,
    });
  });

  it("hangs an undo and its read-back under the step", () => {
    const spans = new SpanBuilder();
    spans.add(record("intended"));
    const [step] = spans.add(record("succeeded"));
    spans.add(record("compensating"));
    const [verified] = spans.add(record("verified"));
    const [undo] = spans.add(record("compensated"));
    expect([verified!.name, undo!.name]).toEqual(["verified crm.add", "undo crm.add"]);
    for (const span of [verified!, undo!]) expect(span.parentSpanId).toBe(step!.spanId);
    expect(new Set([step, verified, undo].map((span) => span!.spanId)).size).toBe(3);
    expect(new Set([step, verified, undo].map((span) => span!.traceId)).size).toBe(1);
  });

  it("makes a point of a span without a beginning here, and separates ids", () => {
    const spans = new SpanBuilder();
    const [blocked] = spans.add(record("blocked", { step: undefined, detail: "kill switch: drill" }));
    expect(blocked).toMatchObject({ name: "blocked crm.add", status: { code: 0 } });
    expect(blocked!.startTimeUnixNano).toBe(blocked!.endTimeUnixNano);
    const [orphan] = spans.add(record("failed"));
    expect(orphan).toMatchObject({ name: "failed crm.add", status: { code: 2 } });
    const [halted] = spans.add(record("halted", { run_id: undefined, step: undefined, tool: undefined }));
    expect(halted!.traceId).not.toBe(blocked!.traceId);
    expect(halted!.name).toBe("halted");
  });

  it("bounds its open spans and gives up the oldest unfinished", () => {
    const spans = new SpanBuilder(2);
    spans.add(record("intended", { step: 1 }));
    spans.add(record("intended", { step: 2 }));
    const [oldest] = spans.add(record("intended", { step: 3 }));
    expect(attributes(oldest!)).toMatchObject({ "svc.step": 1, "svc.event": "intended" });
    expect(spans.takeOpen()).toHaveLength(2);
    expect(spans.takeOpen()).toHaveLength(0);
  });

  it("never ends before it begins, even when the clock was set back", () => {
    const spans = new SpanBuilder();
    const start = record("intended");
    spans.add(start);
    const [span] = spans.add(record("succeeded", { ts_ms: start.ts_ms - 3_600_000 }));
    expect(span!.endTimeUnixNano).toBe(span!.startTimeUnixNano);
  });

  it("derives the trace id from the run id alone", () => {
    verifies("ops.trace.one-trace-per-run");
    expect(traceId({ run_id: "a", hash: "1" })).toBe(traceId({ run_id: "a", hash: "2" }));
    expect(traceId({ run_id: "a", hash: "1" })).toMatch(/^[0-9a-f]{32}$/);
    expect(traceId({ run_id: "a", hash: "1" })).not.toBe(traceId({ run_id: "b", hash: "1" }));
  });
});

interface Exported {
  resourceSpans: {
    resource: unknown;
    scopeSpans: { scope: unknown; spans: Parameters<typeof attributes>[0][] }[];
  }[];
}

async function setUp(
  answer?: Answer,
  more: Partial<TraceSettings> = {},
  env: Pick<RuntimeEnv, "sleep" | "elapsed"> = systemEnv,
) {
  const collector = await startReceiver(answer ?? ((_request, response) => response.end("{}")));
  const egress = createEgress({ block_private: false });
  const lines: string[] = [];
  const log = createLogger({}, { redact: (text) => text, sink: lineSink((line) => lines.push(line)) });
  const tracer = createTracer({ endpoint: collector.url(""), ...more }, { egress, env, log });
  open.push(
    collector.close,
    () => egress.close(),
    () => tracer.close(0),
  );
  const batches = () => collector.received.map((got) => JSON.parse(got.body) as Exported);
  const spans = () => batches().flatMap((batch) => batch.resourceSpans[0]!.scopeSpans[0]!.spans);
  return { collector, tracer, lines, batches, spans };
}
/** An Env whose waits end when the test decides, so that nothing depends on the real clock. */
function manualEnv() {
  const waits: { ms: number; end: () => void }[] = [];
  const env: Pick<RuntimeEnv, "sleep" | "elapsed"> = {
    elapsed: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (ms === 0) return resolve();
        waits.push({ ms, end: resolve });
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
  return { env, waits };
}

describe("export", () => {
  it("is field for field what the official serializer writes", async () => {
    verifies("ops.trace.otlp-json", "ops.trace.service-name", "ops.trace.environment");
    const { collector, tracer, batches } = await setUp(undefined, {
      environment: "prod",
      headers: { "x-team": "k" },
    });
    const start = record("intended", { effect: "read", reason: "why" });
    tracer.record([
      start,
      record("failed", { detail: "no such row" }),
      record("compensating"),
      record("compensated"),
    ]);
    await tracer.close(60_000);
    const mine = batches()[0]!;
    expect(collector.received[0]).toMatchObject({ method: "POST", path: "/v1/traces" });
    expect(collector.received[0]?.headers).toMatchObject({
      "content-type": "application/json",
      "x-team": "k",
    });
    const resource = resourceFromAttributes({ "service.name": "svc", "deployment.environment": "prod" });
    const hr = (nanos: unknown): [number, number] => [
      Number(String(nanos).slice(0, -9)),
      Number(String(nanos).slice(-9)),
    ];
    const official = mine.resourceSpans[0]!.scopeSpans[0]!.spans.map((span) => {
      const s = span as typeof span & Record<string, string>;
      const context = (spanId: string) => ({ traceId: s["traceId"]!, spanId, traceFlags: 1 });
      return {
        name: s["name"]!,
        kind: 0,
        spanContext: () => context(s["spanId"]!),
        parentSpanContext: s["parentSpanId"] === undefined ? undefined : context(s["parentSpanId"]),
        startTime: hr(s["startTimeUnixNano"]),
        endTime: hr(s["endTimeUnixNano"]),
        status: s["status"] as unknown as { code: number },
        attributes: attributes(span) as Record<string, string | number>,
        links: [],
        events: [],
        duration: [0, 0] as [number, number],
        ended: true,
        resource,
        instrumentationScope: { name: "svc" },
        droppedAttributesCount: 0,
        droppedEventsCount: 0,
        droppedLinksCount: 0,
      };
    });
    const bytes = JsonTraceSerializer.serializeRequest(official as never)!;
    expect(mine).toEqual(JSON.parse(Buffer.from(bytes).toString("utf8")));
  });

  it("sends fifty at once, and the rest after five seconds", async () => {
    verifies("ops.trace.batch-50", "ops.trace.batch-5s");
    const { env, waits } = manualEnv();
    const { collector, tracer, spans } = await setUp(undefined, {}, env);
    tracer.record(Array.from({ length: 60 }, () => record("blocked", { step: undefined })));
    await until(() => collector.received.length === 1 && waits.length > 0, "the first batch");
    expect(spans()).toHaveLength(50);
    const timer = waits.at(-1)!;
    expect(timer.ms).toBe(5_000);
    timer.end();
    await until(() => tracer.stats().ok === 60, "the spans to be taken");
    expect(spans()).toHaveLength(60);
    expect(tracer.stats()).toEqual({ queued: 0, ok: 60, failed: 0, dropped: 0 });
  });

  it("keeps spans while the collector is away and sends them when it is back", async () => {
    const { env, waits } = manualEnv();
    const { tracer, lines } = await setUp(
      (_request, response, n) => response.writeHead(n <= 2 ? 503 : 200).end(),
      {},
      env,
    );
    tracer.record([record("blocked")]);
    for (let i = 0; i < 3; i++) {
      await until(() => waits.length > i, "the next attempt");
      waits[i]!.end();
    }
    await until(() => tracer.stats().ok === 1, "the span to be taken");
    expect(waits.map((wait) => wait.ms)).toEqual([5_000, 10_000, 20_000]);
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      "trace export failed",
      "trace export works again",
    ]);
  });

  it.each([
    ["a refusal of the collector", "http://127.0.0.1:1", 400],
    ["a refusal by the egress rules", "http://169.254.169.254", 200],
  ])("drops a batch after %s and logs it", async (_name, endpoint, status) => {
    verifies("ops.trace.guarded", "ops.egress.covers-traces", "ops.trace.failure");
    const { env, waits } = manualEnv();
    const more = status === 200 ? { endpoint } : {};
    const { tracer, lines } = await setUp(
      (_request, response) => response.writeHead(status).end(),
      more,
      env,
    );
    tracer.record([record("blocked")]);
    waits[0]!.end();
    await until(() => tracer.stats().failed === 1, "the span to be given up");
    expect(tracer.stats()).toMatchObject({ queued: 0, failed: 1 });
    expect(lines[0]).toMatch(status === 200 ? /egress rule/ : /answered 400/);
    expect(lines[0]).toContain('"level":"warn"');
  });

  it("does not take a redirect to a login page for a delivery", async () => {
    const { env, waits } = manualEnv();
    const { tracer, lines } = await setUp(
      (request, response) =>
        request.path === "/login"
          ? response.end("log in")
          : response.writeHead(302, { location: "/login" }).end(),
      {},
      env,
    );
    tracer.record([record("blocked")]);
    waits[0]!.end();
    await until(() => tracer.stats().failed === 1, "the delivery to count as failed");
    expect(tracer.stats().ok).toBe(0);
    expect(lines[0]).toMatch(/redirect_method/);
  });

  it("bounds its queue and never throws into the caller", async () => {
    const { env } = manualEnv();
    const { tracer } = await setUp(() => undefined, {}, env);
    expect(() => tracer.record(Array.from({ length: 12_000 }, () => record("blocked")))).not.toThrow();
    expect(() => tracer.record([null as unknown as SpanRecord])).not.toThrow();
    const { queued, dropped } = tracer.stats();
    expect(queued).toBeLessThanOrEqual(5_000);
    expect(dropped).toBeGreaterThan(6_000);
  });

  it("sends open spans at a shutdown, and gives up at the deadline", async () => {
    const { tracer, spans } = await setUp();
    tracer.record([record("intended")]);
    await tracer.close(60_000);
    expect(attributes(spans()[0]!)).toMatchObject({ "svc.event": "intended" });
    const hung = await setUp(() => undefined);
    hung.tracer.record([record("blocked")]);
    await hung.tracer.close(50);
    expect(hung.tracer.stats().ok).toBe(0);
  });

  it("gives the collector ten seconds", async () => {
    verifies("ops.trace.timeout");
    const asked: (number | undefined)[] = [];
    const answer = { status: 200, headers: {}, body: new Uint8Array() };
    const egress = {
      request: async (_url: string, options?: EgressRequest) => {
        asked.push(options?.timeout_ms);
        return answer;
      },
    };
    const tracer = createTracer(
      { endpoint: "http://collector.example" },
      { egress, env: systemEnv, log: silentLogger },
    );
    tracer.record([record("blocked")]);
    await tracer.close(60_000);
    expect(asked).toEqual([10_000]);
  });

  it("tells of spans that the collector rejected", async () => {
    const { tracer, lines } = await setUp((_request, response) =>
      response.end('{"partialSuccess":{"rejectedSpans":"2"}}'),
    );
    tracer.record([record("blocked")]);
    await tracer.close(60_000);
    expect(lines[0]).toMatch(/rejected spans/);
  });

  it("reads its settings", () => {
    expect(otlpSchema.parse({ endpoint: "http://c:4318" })).toEqual({
      endpoint: "http://c:4318",
      headers: {},
    });
    expect(() => otlpSchema.parse({ endpoint: "grpc://c" })).toThrow();
  });
});
