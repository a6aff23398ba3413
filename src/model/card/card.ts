/**
 * The judged part of a card: one pure function from the call and the rules to what a person is shown, the same on
 * every surface, and the hash that stands for it. History and times are outside: the hash changes only when what is
 * judged does.
 */
import { hashingKeyed } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import type { Paced } from "../../kernel/turns.ts";
import { visibleWhole, visibleWholeLine } from "../../kernel/visible.ts";
import { changesOf, restoredBy } from "./changes.ts";
import type { CardFacts } from "./facts.ts";
import { currentState, declaredArguments, moreFields, templateFields } from "./fields.ts";
import { argumentLabel } from "./names.ts";
import { riskOf } from "./risk-words.ts";
import { sentenceOf } from "./sentence.ts";
import type { AskedCall, JudgedCard } from "./types.ts";
import { wayBackOf } from "./way-back.ts";

/** Why a person is asked about any undo. */
export const UNDO_ASKS = "the manifest says that this undo needs a person";

export function judgedCard(facts: CardFacts): JudgedCard {
  const { call, run, manifest, policy, values } = facts;
  const template = manifest?.card;
  const declared = declaredArguments(facts);
  const parts = sentenceOf(titleOf(call, template?.title ?? null), values?.args);
  const fields = templateFields(facts, declared);
  const changes =
    call.kind === "compensation"
      ? restoredBy(values?.before, values?.restored, facts.read_for)
      : changesOf(values?.before, values?.args, manifest, (name) =>
          argumentLabel(name, declared.names.has(name)),
        );
  const more = moreFields(facts, declared, changes.length > 0);
  const compared = changes.length > 0 || [...fields, ...more].some(({ lines }) => lines !== undefined);
  const rule = ruleOf(call, policy);
  return {
    sentence: parts.map(({ text }) => text).join(""),
    parts,
    fields,
    more: [...more, ...currentState(values, compared)],
    changes,
    note: template?.note ?? null,
    reason: visibleWhole(call.reason),
    run_reason: run.reason === null ? null : visibleWhole(run.reason),
    rule,
    causes: causesOf(call, rule),
    risk: riskOf(call.because?.risk ?? null, manifest, run.environment),
    irreversible: call.kind === "call" && manifest?.effect === "irreversible",
    way_back: wayBackOf(call, manifest),
  };
}

/**
 * Keyed with the run's salt, like the hashes of arguments. It covers the judged card whole, so that no part of it can
 * change under an approver.
 */
export function* hashingCard({ call, run, values }: CardFacts, card: JudgedCard): Paced<string> {
  const { kind, tool, step, args_hash } = call;
  const before = values?.before ?? null;
  const judged = { kind, tool, step, args_hash, before, card: card as unknown as Json };
  return yield* hashingKeyed(run.salt, judged);
}

/** An undo is never read as a call of its tool. */
function titleOf({ kind, step, tool }: AskedCall, title: string | null): string {
  // Braces of a name would be taken for places.
  const name = visibleWholeLine(tool).replaceAll("{", "(").replaceAll("}", ")");
  if (kind === "call") return title ?? `Call ${name}`;
  const undo = `Undo step ${step ?? "?"}`;
  return title === null ? `${undo} with ${name}` : `${undo}: ${title}`;
}

const SECTIONS = ["rules", "limits", "budgets", "windows", "freezes"] as const;

function ruleOf({ rule, because }: AskedCall, policy: CardFacts["policy"]): JudgedCard["rule"] {
  if (rule === null) return null;
  const said = because?.causes.find((cause) => cause.rule === rule)?.reason;
  if (said !== undefined) return { id: rule, reason: said };
  const entries: { id: string; reason?: string | undefined }[] = SECTIONS.flatMap((name) => [
    ...(policy.doc[name] ?? []),
  ]);
  return { id: rule, reason: entries.find(({ id }) => id === rule)?.reason ?? null };
}

function causesOf({ kind, because }: AskedCall, rule: JudgedCard["rule"]): string[] {
  const said = (because?.causes ?? []).map(({ reason }) => visibleWhole(reason));
  if (said.length > 0) return [...new Set(said)];
  if (kind === "compensation") return [UNDO_ASKS];
  return rule?.reason == null ? [] : [rule.reason];
}
