/** What a policy's entries ask of a call, laid open: each is a match, perhaps conditions, perhaps an amount. */
import { canonical } from "../../../kernel/canonical.ts";
import type { Json } from "../../../kernel/json.ts";
import type { Policy } from "../compile.ts";
import type { OpName } from "../ops/table.ts";
import type { MatchDoc, PolicyDoc } from "../schema.ts";

export interface ConditionDoc {
  path: string;
  op: OpName;
  value?: unknown;
}

export const SECTIONS = ["rules", "flows", "limits", "budgets", "windows", "freezes"] as const;
type Section = (typeof SECTIONS)[number];

export interface Entry {
  section: Section;
  id: string;
  /** Its place in the section. */
  index: number;
  match: MatchDoc;
  when: readonly ConditionDoc[];
  /** Of a budget. */
  amount: { path: string; max: number } | null;
  action: "allow" | "require_approval" | "deny";
  /** Two entries with the same text are the same entry. */
  text: string;
}

interface AnyDoc {
  id: string;
  match?: MatchDoc | undefined;
  then?: MatchDoc | undefined;
  when?: readonly ConditionDoc[] | undefined;
  path?: string | undefined;
  max?: number | undefined;
  action?: Entry["action"] | undefined;
}

export function entriesOf({ doc }: Policy): Entry[] {
  const asked = approvalsOf(doc);
  return SECTIONS.flatMap((section) => {
    const docs = (doc[section] ?? []) as readonly AnyDoc[];
    return docs.map((one, index) => entryOf(section, one, index, asked));
  });
}

function entryOf(section: Section, doc: AnyDoc, index: number, asked: Json): Entry {
  return {
    section,
    id: doc.id,
    index,
    match: doc.then ?? doc.match ?? {},
    when: doc.when ?? [],
    amount: section === "budgets" ? { path: doc.path!, max: doc.max! } : null,
    action: doc.action ?? "deny",
    // Whoever asks for approval asks those that the policy names where the entry itself does not.
    text: canonical([section, withoutWords(doc), doc.action === "require_approval" ? asked : null] as Json),
  };
}

/** Reasons and hints are told and decide nothing. */
function withoutWords(doc: AnyDoc): unknown {
  const { reason: _, hint: __, ...rest } = doc as AnyDoc & { reason?: unknown; hint?: unknown };
  return rest;
}

function approvalsOf({ approvals }: PolicyDoc): Json {
  const { groups, quorum, ttl, escalate_after, escalate_to, four_eyes } = approvals ?? {};
  return { groups, quorum, ttl, escalate_after, escalate_to, four_eyes } as unknown as Json;
}

/** The parts of a policy that concern every call; entries apart, two policies with the same ones decide alike. */
export function settingsOf(doc: PolicyDoc): string {
  const open = doc.approvals?.max_open_per_run;
  return JSON.stringify([doc.content ?? {}, doc.risk ?? null, approvalsOf(doc), open]);
}
