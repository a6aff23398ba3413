/**
 * The content stage: what the arguments hold, whatever the tool. A finding says what kind of thing was
 * found and where, never what it was.
 */
import { canonicalText } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { knownAbout, learningAbout } from "../../kernel/large-values.ts";
import { doAtOnce, type Paced } from "../../kernel/turns.ts";
import type { Finder } from "../detect/hit.ts";
import { findInjection } from "../detect/injection.ts";
import { type JsonHit, scanningJson } from "../detect/json.ts";
import { findPii } from "../detect/pii.ts";
import { findSecrets } from "../detect/secrets.ts";
import type { PolicyCall } from "./call.ts";
import type { Policy } from "./compile.ts";
import { CONTENT_KINDS, type ContentKind } from "./content-kinds.ts";
import type { Finding } from "./finding.ts";

const FINDERS: Record<ContentKind, Finder> = { secrets: findSecrets, pii: findPii, injection: findInjection };

/** How many places a reason names; the rest are counted. */
const NAMED_PLACES = 5;
const COUNTED_PLACES = 100;

export function checkContent(policy: Policy, call: PolicyCall): Finding[] {
  const findings: Finding[] = [];
  for (const kind of CONTENT_KINDS) {
    const action = policy.content[kind] ?? "off";
    if (action === "off") continue;
    const detail = places(call, FINDERS[kind]);
    if (detail === null) continue;
    const base: Finding = {
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

const looking = (args: Json, finder: Finder): Paced<JsonHit[]> =>
  scanningJson(args, finder, "$args", COUNTED_PLACES);

/** Looks through large arguments for what this policy asks about, in turns; the check then has the answers. */
export function* learningContent({ content }: Policy, args: Json): Paced<void> {
  for (const kind of CONTENT_KINDS) {
    const finder = FINDERS[kind];
    if ((content[kind] ?? "off") !== "off") yield* learningAbout(args, finder, () => looking(args, finder));
  }
}

/** `github_token at $args.token, email in the name of a field at $args.headers`, or null. */
function places(call: PolicyCall, finder: Finder): string | null {
  const hits = knownAbout<JsonHit[]>(call.args, finder) ?? doAtOnce(looking(call.args, finder));
  if (hits.length === 0) return null;
  const named = new Set(
    hits.map(({ kind, path, in_key }) => `${kind} ${in_key ? "in the name of a field " : ""}at ${path}`),
  );
  const shown = [...named].slice(0, NAMED_PLACES).join(", ");
  return named.size > NAMED_PLACES ? `${shown} and ${named.size - NAMED_PLACES} more` : shown;
}
