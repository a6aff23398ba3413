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
import type { CardFacts, CardSubject } from "./card-facts.ts";
import { type CardRun, cardSubject, gatheringCardFacts } from "./load-card-facts.ts";
import type { StoredValues } from "./stored-values.ts";
import type { CardContent } from "./types.ts";

/** A card with its hash. */
export interface BuiltCard {
  judged: CardContent;
  hash: string;
}

/** Cached parts of a card. */
export type CardSummary = Pick<CardContent, "parts" | "irreversible" | "confirm"> & {
  score: number | null;
  hash: string;
  /** Hash of what a signature covers, if it was computed. */
  shown_hash?: string;
};

interface Remembered {
  rules: ActiveRules;
  said: string;
  summary: CardSummary;
}

const made = new LruMap<string, Remembered>(4_000);

/** Cache key: all fields of a request that its card or its signature covers, except values. */
function saidBy(request: ApprovalDoc, run: CardRun): string {
  const { tool, kind, step, args_hash, reason, rule, approvers, internal } = request;
  const { because = null, undo = null, needs } = internal;
  const said = { tool, kind, step, args_hash, reason, rule, because, undo, approvers, needs };
  return valueHash(asJson({ ...said, salt: run.salt, run: run.reason, environment: run.environment }));
}

/** Builds a card from plain data, in this thread or another. */
export function* drawingCard(
  subject: CardSubject,
  stored: StoredValues | undefined,
): PausableWork<BuiltCard & { values: CardFacts["values"] }> {
  const facts = yield* gatheringCardFacts(subject, stored);
  yield;
  const judged = yield* buildingCardContent(facts);
  yield;
  return { judged, hash: yield* hashingCardContent(facts, judged), values: facts.values };
}

/** Builds and caches a card at once, for a unit of work that finds none in the cache. */
export function* buildingCard(
  rules: ActiveRules,
  run: CardRun,
  request: ApprovalDoc,
  stored: StoredValues | undefined,
): PausableWork<BuiltCard> {
  const card = yield* drawingCard(cardSubject(rules, run, request), stored);
  if (stored !== undefined) cacheCardSummary(rules, run, request, summarizeCard(card));
  return card;
}

export function summarizeCard({ judged, hash }: BuiltCard, shown_hash?: string): CardSummary {
  const { parts, irreversible, risk, confirm } = judged;
  return {
    parts,
    irreversible,
    score: risk?.score ?? null,
    hash,
    ...(confirm && { confirm }),
    ...(shown_hash !== undefined && { shown_hash }),
  };
}

/** Caches the summary of a card with values. */
export function cacheCardSummary(
  rules: ActiveRules,
  run: CardRun,
  request: ApprovalDoc,
  summary: CardSummary,
): void {
  made.set(request.id, { rules, said: saidBy(request, run), summary });
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
