/** The entries of a policy in one common form: a match, optional conditions, and an optional amount. */

import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { asJson } from "../../../kernel/json/json.ts";
import { earlierPath } from "../checks/compared-calls.ts";
import type { CompiledPolicy } from "../compile.ts";
import type { OpName } from "../ops/table.ts";
import type { MatchDoc, PolicyDoc } from "../schema.ts";

export interface ConditionDoc {
  path: string;
  op: OpName;
  value?: unknown;
}

const ENTRY_SECTIONS = ["rules", "flows", "limits", "budgets", "windows", "freezes"] as const;
type Section = (typeof ENTRY_SECTIONS)[number];

export interface ProverEntry {
  section: Section;
  id: string;
  /** Position in the section. */
  index: number;
  match: MatchDoc;
  when: readonly ConditionDoc[];
  /** For budgets only. */
  amount: { path: string; max: number } | null;
  action: "allow" | "require_approval" | "deny";
  /** True for a rule that does not apply inside `svc run`. */
  passes_sandboxed: boolean;
  /** Canonical text; two entries with the same text are equal. */
  text: string;
}

interface AnyDoc {
  id: string;
  match?: MatchDoc | undefined;
  then?: MatchDoc | undefined;
  when?: readonly ConditionDoc[] | undefined;
  path?: string | undefined;
  max?: number | undefined;
  action?: ProverEntry["action"] | undefined;
  sandboxed?: "allow" | undefined;
}

export function entriesOf({ doc }: CompiledPolicy): ProverEntry[] {
  const asked = approvalsOf(doc);
  return ENTRY_SECTIONS.flatMap((section) => {
    const docs = (doc[section] ?? []) as readonly AnyDoc[];
    return docs.map((one, index) => entryOf(section, one, index, asked));
  });
}

function entryOf(section: Section, doc: AnyDoc, index: number, asked: JsonValue): ProverEntry {
  return {
    section,
    id: doc.id,
    index,
    match: doc.then ?? doc.match ?? {},
    // A condition on an earlier call can hold for any value.
    when: (doc.when ?? []).filter(({ value }) => earlierPath(value) === undefined),
    passes_sandboxed: doc.sandboxed === "allow",
    amount: section === "budgets" ? { path: doc.path!, max: doc.max! } : null,
    action: doc.action ?? "deny",
    // Includes the policy's approval defaults, which apply if the entry has no terms.
    text: toCanonicalJson([
      section,
      withoutWords(doc),
      doc.action === "require_approval" ? asked : null,
    ] as JsonValue),
  };
}

/** Removes reasons and hints, which do not affect decisions. */
function withoutWords(doc: AnyDoc): unknown {
  const { reason: _, hint: __, ...rest } = doc as AnyDoc & { reason?: unknown; hint?: unknown };
  return rest;
}

function approvalsOf({ approvals }: PolicyDoc): JsonValue {
  const { groups, quorum, ttl, escalate_after, escalate_to, four_eyes, signed } = approvals ?? {};
  return asJson({ groups, quorum, ttl, escalate_after, escalate_to, four_eyes, signed });
}

/** The parts of a policy that concern every call. Two policies with equal settings and entries decide alike. */
export function settingsOf(doc: PolicyDoc): string {
  const open = doc.approvals?.max_open_per_run;
  return JSON.stringify([doc.content ?? {}, doc.risk ?? null, approvalsOf(doc), open]);
}
