/**
 * OTLP/HTTP JSON for spans. Implemented here because the fields are few and fixed. A test compares each field with the
 * official OpenTelemetry serializer.
 */
type OtlpValue = { stringValue: string } | { intValue: number };

interface OtlpAttribute {
  key: string;
  value: OtlpValue;
}

/** `status.code`: 0 unset, 1 ok, 2 error. */
export type OtlpStatus = 0 | 1 | 2;

export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: 1;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: OtlpAttribute[];
  droppedAttributesCount: 0;
  events: [];
  droppedEventsCount: 0;
  status: { code: OtlpStatus };
  links: OtlpLink[];
  droppedLinksCount: 0;
  flags: number;
}

/** A related span in another trace. */
interface OtlpLink {
  attributes: [];
  spanId: string;
  traceId: string;
  droppedAttributesCount: 0;
  flags: number;
}

interface SpanFields {
  trace_id: string;
  span_id: string;
  parent_span_id?: string | undefined;
  name: string;
  start_ms: number;
  end_ms: number;
  attributes: Readonly<Record<string, string | number | null | undefined>>;
  status: OtlpStatus;
  /** W3C `traceparent` values. Invalid ones are left out. */
  links?: readonly (string | undefined)[];
}

const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
/** Flag bits: whether the linked span is remote is known, and it is remote. */
const REMOTE = 0x300;

function otlpLinks(given: readonly (string | undefined)[]): OtlpLink[] {
  return [...new Set(given)].flatMap((text) => {
    const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? "") ?? [];
    if (traceId === undefined || spanId === undefined) return [];
    return [
      {
        attributes: [],
        spanId,
        traceId,
        droppedAttributesCount: 0,
        flags: Number.parseInt(flags!, 16) | REMOTE,
      },
    ];
  });
}

/** Flag bits: sampled, and whether the parent is remote is known (it is not remote). */
const FLAGS = 0x101;

const nanos = (ms: number) => `${Math.max(0, Math.trunc(ms))}000000`;

function otlpAttributes(values: SpanFields["attributes"]): OtlpAttribute[] {
  const out: OtlpAttribute[] = [];
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    out.push({ key, value: typeof value === "number" ? { intValue: value } : { stringValue: value } });
  }
  return out;
}

export function otlpSpan(span: SpanFields): OtlpSpan {
  return {
    traceId: span.trace_id,
    spanId: span.span_id,
    ...(span.parent_span_id === undefined ? {} : { parentSpanId: span.parent_span_id }),
    name: span.name,
    kind: 1,
    startTimeUnixNano: nanos(span.start_ms),
    // If the clock moved back between two records, the span must not end before its start.
    endTimeUnixNano: nanos(Math.max(span.start_ms, span.end_ms)),
    attributes: otlpAttributes(span.attributes),
    droppedAttributesCount: 0,
    events: [],
    droppedEventsCount: 0,
    status: { code: span.status },
    links: otlpLinks(span.links ?? []),
    droppedLinksCount: 0,
    flags: FLAGS,
  };
}

export interface OtlpResource {
  readonly service_name: string;
  readonly environment: string | null;
}

export function otlpRequest(resource: OtlpResource, spans: readonly OtlpSpan[]): string {
  const attributes = otlpAttributes({
    "service.name": resource.service_name,
    "deployment.environment": resource.environment,
  });
  const scope = { name: "svc" };
  return JSON.stringify({
    resourceSpans: [{ resource: { attributes, droppedAttributesCount: 0 }, scopeSpans: [{ scope, spans }] }],
  });
}
