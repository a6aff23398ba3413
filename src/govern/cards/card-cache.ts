/**
 * Cache of cards built from requests. Values can be large, so cards are built while yielding to other work, and the
 * cache holds only the parts that lists and decisions need. The values of a request never change, so a card is rebuilt
 * only after a change of the rules or of the request itself.
 */

import { valueHash } from "../../kernel/hash.ts";
import { asJson } from "../../kernel/json/json.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import type { ActiveRules } from "../core.ts";
import { buildingCardContent, hashingCardContent } from "./card.ts";
import type { CardFacts } from "./card-facts.ts";
import { type CardRun, gatheringCardFacts } from "./load-card-facts.ts";
import type { ApprovalValues, CardContent } from "./types.ts";

/** A card with its input and its hash. */
export interface BuiltCard {
  facts: CardFacts;
  judged: CardContent;
  summary: CardSummary;
  hash: string;
}

/** Cached parts of a card. */
export type CardSummary = Pick<CardContent, "parts" | "irreversible" | "confirm"> & {
  score: number | null;
  hash: string;
};

interface Remembered {
  rules: ActiveRules;
  said: string;
  summary: CardSummary;
}

const made = new LruMap<string, Remembered>(4_000);

/** Cache key: all fields of a request that its card shows, except values. */
function saidBy({ tool, kind, step, args_hash, reason, rule, internal }: ApprovalDoc, run: CardRun): string {
  const { because = null, undo = null } = internal;
  const said = { tool, kind, step, args_hash, reason, rule, because, undo, salt: run.salt, run: run.reason };
  return valueHash(asJson({ ...said, environment: run.environment }));
}

export function* buildingCard(
  rules: ActiveRules,
  run: CardRun,
  request: ApprovalDoc,
  values: ApprovalValues | undefined,
): PausableWork<BuiltCard> {
  const facts = yield* gatheringCardFacts(rules, run, request, values);
  yield;
  const judged = yield* buildingCardContent(facts);
  yield;
  const hash = yield* hashingCardContent(facts, judged);
  const { parts, irreversible, risk, confirm } = judged;
  const summary = { parts, irreversible, score: risk?.score ?? null, hash, ...(confirm && { confirm }) };
  if (values !== undefined) made.set(request.id, { rules, said: saidBy(request, run), summary });
  return { facts, judged, summary, hash };
}

/** Cached summary of a request's card, if nothing on the card has changed since. */
export function cachedCardSummary(
  rules: ActiveRules,
  run: CardRun,
  request: ApprovalDoc,
): CardSummary | undefined {
  const known = made.get(request.id);
  if (known === undefined || known.rules.manifests !== rules.manifests || known.rules.policy !== rules.policy)
    return undefined;
  return known.said === saidBy(request, run) ? known.summary : undefined;
}
