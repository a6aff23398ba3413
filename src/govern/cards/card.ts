/**
 * Builds the part of a card that an approver decides on. Every surface shows the same result of one pure function, and
 * a hash identifies it. History and times are not part of it, so the hash changes only when the decision changes.
 */

import { keyedHashInSteps } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { visibleOneLine, visibleText } from "../../kernel/text/escape-invisible.ts";
import type { CardFacts } from "./card-facts.ts";
import { listChanges, undoChanges } from "./changes.ts";
import { explainRisk } from "./explain-risk.ts";
import { currentState, declaringArguments, moreFields, templateFields } from "./fields.ts";
import { argumentLabel } from "./text/names.ts";
import { fillTitle } from "./text/sentence.ts";
import type { CardContent, RequestedCall } from "./types.ts";
import { summarizeUndo } from "./undo-summary.ts";

/** Reason for an approval request when the manifest requires approval for its undos. */
export const UNDO_APPROVAL_REASON = "the manifest requires approval for this undo";

export function* buildingCardContent(facts: CardFacts): PausableWork<CardContent> {
  const { call, run, manifest, rule, values } = facts;
  const template = manifest?.card;
  const declared = yield* declaringArguments(facts);
  const parts = fillTitle(titleOf(call, template?.title ?? null), values?.args);
  yield;
  const fields = yield* templateFields(facts, declared);
  const changes =
    call.kind === "compensation"
      ? undoChanges(values?.before, values?.restored, facts.read_for)
      : listChanges(values?.before, values?.args, manifest, (name) =>
          argumentLabel(name, declared.names.has(name)),
        );
  yield;
  const more = yield* moreFields(facts, declared, changes.length > 0);
  const compared = changes.length > 0 || [...fields, ...more].some(({ lines }) => lines !== undefined);
  return {
    sentence: parts.map(({ text }) => text).join(""),
    parts,
    fields,
    more: [...more, ...(yield* currentState(values, compared))],
    changes,
    note: template?.note ?? null,
    reason: visibleText(call.reason),
    run_reason: run.reason === null ? null : visibleText(run.reason),
    rule,
    causes: causesOf(call, rule),
    risk: explainRisk(call.because?.risk ?? null, manifest, run.environment),
    irreversible: call.kind === "call" && manifest?.effect === "irreversible",
    way_back: summarizeUndo(call, manifest),
    ...(call.kind === "call" && template?.confirm ? { confirm: true as const } : {}),
  };
}

/** A row for each field of a card. A new field compiles only after its row says if the card hash covers it. */
export type CardHashRows<Card = CardContent> = Record<keyof Card, "hashed" | "not hashed">;

/** Rows of the card hash. A change of a row changes the hash of every card. */
export const CARD_HASH_ROWS = {
  sentence: "hashed",
  parts: "hashed",
  fields: "hashed",
  more: "hashed",
  changes: "hashed",
  note: "hashed",
  reason: "hashed",
  run_reason: "hashed",
  rule: "hashed",
  causes: "hashed",
  risk: "hashed",
  irreversible: "hashed",
  way_back: "hashed",
  confirm: "hashed",
} as const satisfies CardHashRows;

/**
 * Hash of the fields that `CARD_HASH_ROWS` covers, so that none of them can change before the approver decides. Keyed
 * with the run's salt, like argument hashes.
 */
export function* hashingCardContent(
  { call, run, values }: CardFacts,
  card: CardContent,
): PausableWork<string> {
  const { kind, tool, step, args_hash } = call;
  const before = values?.before ?? null;
  const judged = { kind, tool, step, args_hash, before, card: hashedFields(card) };
  return yield* keyedHashInSteps(run.salt, judged);
}

function hashedFields(card: CardContent): JsonValue {
  const rows: CardHashRows = CARD_HASH_ROWS;
  const fields = Object.entries<unknown>(card).filter(
    ([name]) => rows[name as keyof CardContent] === "hashed",
  );
  return Object.fromEntries(fields) as { [name: string]: JsonValue };
}

/** Title of the card. An undo is labelled as one, so that it does not look like a call of its tool. */
function titleOf({ kind, step, tool }: RequestedCall, title: string | null): string {
  // Replaces braces, which would otherwise be read as placeholders.
  const name = visibleOneLine(tool).replaceAll("{", "(").replaceAll("}", ")");
  if (kind === "call") return title ?? `Call ${name}`;
  const undo = `Undo step ${step ?? "?"}`;
  return title === null ? `${undo} with ${name}` : `${undo}: ${title}`;
}

function causesOf({ kind, because }: RequestedCall, rule: CardContent["rule"]): string[] {
  const said = (because?.causes ?? []).map(({ reason }) => visibleText(reason));
  if (said.length > 0) return [...new Set(said)];
  if (kind === "compensation") return [UNDO_APPROVAL_REASON];
  return rule?.reason == null ? [] : [rule.reason];
}
