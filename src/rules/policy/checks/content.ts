/**
 * Content stage: checks the arguments of any tool. A finding names the kind and the path of a match, never its value.
 */
import { canonicalText } from "../../../kernel/hash.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { cachedResult, precomputeResult } from "../../../kernel/json/large-value-cache.ts";
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

/** Scans large arguments while yielding to other work. The content check then uses the cached results. */
export function* learningContent({ content }: CompiledPolicy, args: JsonValue): PausableWork<void> {
  for (const kind of CONTENT_KINDS) {
    const finder = FINDERS[kind];
    if ((content[kind] ?? "off") !== "off")
      yield* precomputeResult(args, finder, () => looking(args, finder));
  }
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
