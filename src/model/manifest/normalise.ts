/** Fills in what an entry left out, so that the engine never meets a missing field or a second spelling. */
import type { Json } from "../../kernel/json.ts";
import type { CardTemplate } from "../card/template.ts";
import { BEFORE, type ManifestEntry, READ_BACK } from "./schema.ts";
import type { Before, Compensation, Drill, Effect, Manifest, Verification } from "./types.ts";

type Template = { [name: string]: Json };

/** The entry must come from a strict reading (parseYaml, parseJson): its free values are JSON. */
export function normalise(entry: ManifestEntry): Manifest {
  const { idempotency } = entry;
  return {
    tool: entry.tool,
    version: String(entry.version ?? "1"),
    lifecycle: entry.lifecycle ?? "approved",
    effect: effectOf(entry),
    permission: entry.permission,
    owner: entry.owner ?? null,
    requires: [...(entry.requires ?? [])],
    idempotency:
      idempotency == null ? [] : typeof idempotency === "string" ? [idempotency] : [...idempotency],
    risk: {
      ...(entry.risk as Template | null | undefined),
      data_class: entry.risk?.data_class ?? null,
      blast_radius: entry.risk?.blast_radius ?? null,
    },
    compensation: entry.compensation == null ? null : compensationOf(entry.compensation),
    verification: entry.verification == null ? null : verificationOf(entry.verification),
    ...(entry.before == null ? {} : { before: beforeOf(entry.before) }),
    audit: {
      redaction: [...(entry.audit?.redaction ?? [])],
      retention_days: entry.audit?.retention_days ?? null,
      evidence_export: entry.audit?.evidence_export ?? null,
    },
    ...(entry.card == null ? {} : { card: cardOf(entry.card) }),
    ...(entry.drill == null ? {} : { drill: drillOf(entry.drill) }),
  };
}

function effectOf({ effect }: ManifestEntry): Effect {
  return effect === "read_only" ? "read" : effect;
}

function compensationOf(entry: NonNullable<ManifestEntry["compensation"]>): Compensation {
  return {
    tool: entry.tool,
    args: (entry.args ?? {}) as Template,
    kind: entry.kind ?? "compensation",
    residue: [...(entry.residue ?? [])],
    requires_approval: entry.requires_approval ?? false,
    ...(entry.when_absent == null
      ? {}
      : { when_absent: { tool: entry.when_absent.tool, args: (entry.when_absent.args ?? {}) as Template } }),
    ...(entry.until == null ? {} : { until: entry.until }),
  };
}

function beforeOf(entry: NonNullable<ManifestEntry["before"]>): Before {
  const { tool, args, absent, ignore, max_bytes, required } = entry;
  return {
    tool,
    args: (args ?? {}) as Template | Template[],
    ...(absent == null ? {} : { absent: absent as Json }),
    ...(ignore == null || ignore.length === 0 ? {} : { ignore: [...ignore] }),
    ...(max_bytes == null || max_bytes === BEFORE.max_bytes.default ? {} : { max_bytes }),
    ...(required === false ? { required } : {}),
  };
}

function cardOf(entry: NonNullable<ManifestEntry["card"]>): CardTemplate {
  return {
    title: entry.title ?? null,
    fields: (entry.fields ?? []).map(({ label, path, as }) => ({ label, path, as: as ?? "text" })),
    reveal: [...(entry.reveal ?? [])],
    note: entry.note ?? null,
  };
}

function drillOf({ args, expect }: NonNullable<ManifestEntry["drill"]>): Drill {
  return { args: (args ?? {}) as Template, ...(expect === undefined ? {} : { expect: expect as Json }) };
}

function verificationOf(entry: NonNullable<ManifestEntry["verification"]>): Verification {
  return {
    tool: entry.tool,
    args: (entry.args ?? {}) as Template,
    expect: entry.expect as Json,
    retries: entry.retries ?? READ_BACK.retries.default,
    backoff_ms: entry.backoff_ms ?? READ_BACK.backoff_ms.default,
  };
}
