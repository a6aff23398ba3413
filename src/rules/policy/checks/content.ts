/**
 * Content stage: checks the arguments of any tool. A finding names the kind and the path of a match, never its value.
 */
import { canonicalText } from "../../../kernel/hash.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { cachedResult, cacheResult } from "../../../kernel/json/large-value-cache.ts";
import { type PausableWork, runAtOnce } from "../../../kernel/pausable-work.ts";
import type { HitFinder } from "../../detect/hits.ts";
import { findInjection } from "../../detect/injection.ts";
import { type JsonHit, scanningJson } from "../../detect/json.ts";
import { findPii } from "../../detect/pii.ts";
import { findSecrets } from "../../detect/secrets.ts";
import type { PolicyCall } from "../call.ts";
import type { CompiledPolicy } from "../compile.ts";
import type { PolicyFinding } from "../finding.ts";
import { CONTENT_KINDS, type ContentKind } from "./content-kinds.ts";

const FINDERS: Record<ContentKind, HitFinder> = {
  secrets: findSecrets,
  pii: findPii,
  injection: findInjection,
};

/** Maximum paths that a reason names; it counts the rest. */
const NAMED_PLACES = 5;
const COUNTED_PLACES = 100;

export function checkContent(policy: CompiledPolicy, call: PolicyCall): PolicyFinding[] {
  const findings: PolicyFinding[] = [];
  for (const kind of CONTENT_KINDS) {
    const action = policy.content[kind] ?? "off";
    if (action === "off") continue;
    const detail = places(call, FINDERS[kind]);
    if (detail === null) continue;
    const base: PolicyFinding = {
      stage: "content",
      action,
      reason: `content check (${kind}): ${detail}`,
      rule: null,
    };
    findings.push(action === "require_approval" ? { ...base, approval: policy.approvals } : base);
  }
  const most = policy.content.max_bytes;
  if (most !== undefined) {
    const bytes = Buffer.byteLength(canonicalText(call.args));
    if (bytes > most) {
      const reason = `content check (max_bytes): the arguments have ${bytes} bytes, more than ${most}`;
      findings.push({ stage: "content", action: "deny", reason, rule: null });
    }
  }
  return findings;
}

const looking = (args: JsonValue, finder: HitFinder): PausableWork<JsonHit[]> =>
  scanningJson(args, finder, "$args", COUNTED_PLACES);

/** The content checks that a policy asks for. */
export const activeContentChecks = ({ content }: CompiledPolicy): ContentKind[] =>
  CONTENT_KINDS.filter((kind) => (content[kind] ?? "off") !== "off");

/** Hits of each check, as another thread found them in large arguments. */
export type ContentHits = Partial<Record<ContentKind, JsonHit[]>>;

export function findContent(args: JsonValue, kinds: readonly ContentKind[]): ContentHits {
  return Object.fromEntries(kinds.map((kind) => [kind, runAtOnce(looking(args, FINDERS[kind]))]));
}

/** Caches the hits in large arguments. The content check then uses them. */
export function cacheContent(args: JsonValue, found: ContentHits): void {
  for (const kind of CONTENT_KINDS)
    if (found[kind] !== undefined) cacheResult(args, FINDERS[kind], found[kind]);
}

/** Text such as `github_token at $args.token, email in the name of a field at $args.headers`, or null. */
function places(call: PolicyCall, finder: HitFinder): string | null {
  const hits = cachedResult<JsonHit[]>(call.args, finder) ?? runAtOnce(looking(call.args, finder));
  if (hits.length === 0) return null;
  const named = new Set(
    hits.map(({ kind, path, in_key }) => `${kind} ${in_key ? "in the name of a field " : ""}at ${path}`),
  );
  const shown = [...named].slice(0, NAMED_PLACES).join(", ");
  return named.size > NAMED_PLACES ? `${shown} and ${named.size - NAMED_PLACES} more` : shown;
}
