/**
 * The whole card of a call, drawn from plain data: its content, its values and its text. The event loop draws small
 * cards, and a thread draws those with large values.
 */
import type { JsonValue } from "../../kernel/json/json.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { withPlainMasks } from "../../rules/redact/mask.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import type { RunDoc } from "../runs/run.ts";
import { describeUndoDeadline } from "../runs/undo-deadlines.ts";
import { shownContent } from "../signing/shown.ts";
import { type BuiltCard, drawingCard } from "./card-cache.ts";
import type { CardFacts, CardSubject } from "./card-facts.ts";
import { type CardHead, callText, cardText } from "./card-text.ts";
import type { StoredValues } from "./stored-values.ts";
import type { CardContent, CardContext } from "./types.ts";

/** `closes` is undefined for a call, whose arguments can hold the deadline. */
type Around<C> = Omit<C, "closes"> & { closes?: string | null | undefined };

export interface CardTask {
  subject: CardSubject;
  stored: StoredValues | undefined;
  /** For the card of a request. */
  request?: { head: CardHead; context: Around<CardContext> };
  /** For the card of a call in a plan. */
  planned?: Around<Pick<CardContext, "proof" | "closes">>;
  /** For a signature, which covers more than the content. */
  signed?: { run: Pick<RunDoc, "environment" | "salt">; approval: ApprovalDoc };
}

export interface WholeCard extends BuiltCard {
  /** Values with plain masks; null if they are not stored. */
  arguments: JsonValue;
  before: JsonValue;
  proof: string | null;
  closes: string | null;
  /** Empty for a task that only needs the summary. */
  text: string;
  shown_hash?: string;
}

export function* drawingWholeCard(task: CardTask): PausableWork<WholeCard> {
  const { values, ...card } = yield* drawingCard(task.subject, task.stored);
  const shown_hash = task.signed && shownContent(task.signed.run, task.signed.approval, card.judged).hash;
  const drawn = { ...card, ...(shown_hash === undefined ? {} : { shown_hash }) };
  if (task.request === undefined && task.planned === undefined)
    return { ...drawn, arguments: null, before: null, proof: null, closes: null, text: "" };
  const { proof = null, closes = deadlineOf(task, values) } = task.request?.context ?? task.planned ?? {};
  yield;
  const args = yield* plain(values?.args);
  const before = yield* plain(values?.before);
  const text = yield* textOf(task, card.judged, closes);
  return { ...drawn, arguments: args, before, proof, closes, text };
}

const deadlineOf = ({ subject }: CardTask, values: CardFacts["values"]): string | null =>
  describeUndoDeadline(subject.manifest ?? undefined, values);

function* plain(value: JsonValue | undefined): PausableWork<JsonValue> {
  return value === undefined ? null : yield* withPlainMasks(value);
}

function* textOf(
  { request, planned }: CardTask,
  judged: CardContent,
  closes: string | null,
): PausableWork<string> {
  if (request !== undefined) return yield* cardText(request.head, judged, { ...request.context, closes });
  return yield* callText(judged, { proof: planned?.proof ?? null, closes });
}
