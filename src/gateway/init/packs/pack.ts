/**
 * Manifests for public tool servers, each tried in this project's tests against the server itself. A pack speaks for
 * a tool only while its definition is the one that was tried; for everything else `svc init` guesses, and says so.
 */
import { canonical } from "../../../kernel/canonical.ts";
import { sha256Hex } from "../../../kernel/hash.ts";
import type { Json, JsonObject } from "../../../kernel/json.ts";
import type { Effect } from "../../../model/manifest/types.ts";

type Template = { [name: string]: Json };

/** A manifest's entry as it stands in a pack: tools by their own names, without the permission. */
export interface PackEntry {
  effect: Effect;
  before?: {
    tool: string;
    args: Template | Template[];
    max_bytes?: number;
    absent?: Json;
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
  verification?: { tool: string; args: Template; expect: Json; retries: number; backoff_ms: number };
  /** What an approver reads first; the arguments are listed below it. */
  card?: { title: string };
  /** What its reader should know, in a line or two. */
  note?: string;
}

export interface Pack {
  /** The package that was tried, with its version. */
  tried: string;
  /** Every tool that the server offered, with the fingerprint of its schemas. */
  tools: Readonly<Record<string, string>>;
  entries: Readonly<Record<string, PackEntry>>;
  /** Rules that the entries rely on, or that keep agents from what no entry takes back. */
  rules?: readonly PackRule[];
}

export interface PackRule {
  id: string;
  tool: string;
  when: readonly { path: string; op: string; value?: Json }[];
  action: "deny" | "require_approval";
  reason: string;
}

/** Over what a caller and an undo rely on; descriptions may change. */
export function fingerprint(definition: JsonObject): string {
  const { inputSchema = null, outputSchema = null } = definition;
  return sha256Hex(canonical([inputSchema, outputSchema])).slice(0, 16);
}

/** All tools that an entry calls. */
export function toolsOf(name: string, { before, compensation, verification }: PackEntry): string[] {
  const parts = [before, compensation, compensation?.when_absent, verification];
  return [name, ...parts.flatMap((part) => (part === undefined ? [] : [part.tool]))];
}

/** The entry with its tools under other names. */
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

/** Read twice more: some servers answer a moment before their work can be seen. */
export const patient = { retries: 2, backoff_ms: 50 };
