/**
 * Manifests for public tool servers, each tested with the server itself. A pack applies to a tool only while the tool's
 * definition is the tested one. For all other tools `svc init` guesses and marks the guesses.
 */
import { sha256Hex } from "../../../kernel/hash.ts";
import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import type { ToolEffect } from "../../../rules/manifest/types.ts";

type Template = { [name: string]: JsonValue };

/** A manifest entry in a pack, with the server's own tool names and without a permission. */
export interface PackEntry {
  effect: ToolEffect;
  before?: {
    tool: string;
    args: Template | Template[];
    max_bytes?: number;
    absent?: JsonValue;
    ignore?: string[];
    required?: false;
  };
  compensation?: {
    tool: string;
    args: Template;
    kind?: "inverse";
    residue?: string[];
    when_absent?: { tool: string; args: Template };
  };
  verification?: { tool: string; args: Template; expect: JsonValue; retries: number; backoff_ms: number };
  /** Title of the approval card. The arguments follow below it. */
  card?: { title: string };
  /** A note for the reader, one or two lines. */
  note?: string;
}

export interface ManifestPack {
  /** The tested package with its version. */
  tried: string;
  /** Every tool that the server offered, with the fingerprint of its schemas. */
  tools: Readonly<Record<string, string>>;
  entries: Readonly<Record<string, PackEntry>>;
  /** Rules that the entries depend on, or that block calls without an undo. */
  rules?: readonly PackRule[];
}

export interface PackRule {
  id: string;
  tool: string;
  when: readonly { path: string; op: string; value?: JsonValue }[];
  action: "deny" | "require_approval";
  reason: string;
}

/** Hash of the schemas, which callers and undos depend on. Descriptions may change. */
export function schemaFingerprint(definition: JsonObject): string {
  const { inputSchema = null, outputSchema = null } = definition;
  return sha256Hex(toCanonicalJson([inputSchema, outputSchema])).slice(0, 16);
}

/** All tools that an entry calls, including its own. */
export function toolsOf(name: string, { before, compensation, verification }: PackEntry): string[] {
  const parts = [before, compensation, compensation?.when_absent, verification];
  return [name, ...parts.flatMap((part) => (part === undefined ? [] : [part.tool]))];
}

/** The entry with renamed tools. */
export function withTools(entry: PackEntry, rename: (name: string) => string): PackEntry {
  const named = <T extends { tool: string }>(part: T): T => ({ ...part, tool: rename(part.tool) });
  const { before, compensation, verification, ...rest } = entry;
  const absent = compensation?.when_absent;
  return {
    ...rest,
    ...(before && { before: named(before) }),
    ...(compensation && {
      compensation: { ...named(compensation), ...(absent && { when_absent: named(absent) }) },
    }),
    ...(verification && { verification: named(verification) }),
  };
}

/** Two further read attempts, because some servers answer shortly before their work is visible. */
export const READ_BACK_RETRIES = { retries: 2, backoff_ms: 50 };
