/**
 * Cards as they are made from requests: in turns, since the values may be large, and remembered by what a list and a
 * decision need of them. A request's values are written once and never changed, so a card is made again only where the
 * rules, or what the request says of itself, have changed.
 */
import { valueHash } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { Lru } from "../../kernel/lru.ts";
import type { Paced } from "../../kernel/turns.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import { hashingCard, judgedCard } from "../../model/card/card.ts";
import type { CardFacts } from "../../model/card/facts.ts";
import type { ApprovalValues, JudgedCard } from "../../model/card/types.ts";
import type { Rules } from "../core.ts";
import { type CardRun, gatheringCardFacts } from "./card-facts.ts";

/** A card, what it was made from, and its hash. */
export interface MadeCard {
  facts: CardFacts;
  judged: JudgedCard;
  summary: CardSummary;
  hash: string;
}

/** What is remembered of a card. */
export type CardSummary = Pick<JudgedCard, "parts" | "irreversible"> & { score: number | null; hash: string };

interface Remembered {
  rules: Rules;
  said: string;
  summary: CardSummary;
}

const made = new Lru<string, Remembered>(4_000);

/** What a request says of itself on its card, its values left out. */
function saidBy({ tool, kind, step, args_hash, reason, rule, internal }: ApprovalDoc, run: CardRun): string {
  const { because = null, undo = null } = internal;
  const said = { tool, kind, step, args_hash, reason, rule, because, undo, salt: run.salt, run: run.reason };
  return valueHash({ ...said, environment: run.environment } as unknown as Json);
}

export function* makingCard(
  rules: Rules,
  run: CardRun,
  request: ApprovalDoc,
  values: ApprovalValues | undefined,
): Paced<MadeCard> {
  const facts = yield* gatheringCardFacts(rules, run, request, values);
  yield;
  const judged = judgedCard(facts);
  yield;
  const hash = yield* hashingCard(facts, judged);
  const { parts, irreversible, risk } = judged;
  const summary = { parts, irreversible, score: risk?.score ?? null, hash };
  if (values !== undefined) made.set(request.id, { rules, said: saidBy(request, run), summary });
  return { facts, judged, summary, hash };
}

/** What was remembered of a request's card, where nothing that it shows has changed since. */
export function rememberedCard(rules: Rules, run: CardRun, request: ApprovalDoc): CardSummary | undefined {
  const known = made.get(request.id);
  if (known === undefined || known.rules.manifests !== rules.manifests || known.rules.policy !== rules.policy)
    return undefined;
  return known.said === saidBy(request, run) ? known.summary : undefined;
}
