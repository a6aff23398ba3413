/** Renders a card as plain text, for terminals and operator agents. */
import type { PausableWork } from "../../kernel/pausable-work.ts";
import type { DiffLine } from "../../kernel/text/diff.ts";
import type { ApprovalStatus } from "../approvals/approval.ts";
import { actorText } from "../roles.ts";
import type { CardChange, CardContent, CardContext, CardField } from "./types.ts";

export interface CardHead {
  approval_id: string;
  status: ApprovalStatus;
  actor: string;
  acting?: readonly string[] | undefined;
  run_id: string;
}

const SIGNS = { same: "  ", added: "+ ", removed: "- ", gap: "⋯ " } as const;

export function* cardText(head: CardHead, card: CardContent, around: CardContext): PausableWork<string> {
  const lines = [
    card.sentence,
    "",
    row("Request", `${head.approval_id} (${head.status})`),
    row("Who", `${actorText(head)}, in run ${head.run_id}`),
    ...(yield* judgedLines(card, around)),
    "",
    ...soFarLines(around),
  ];
  return lines.join("\n");
}

type Proven = Pick<CardContext, "proof" | "closes">;

/** Text of one call in a plan. The plan shows the actor and the history once for all its calls. */
export function* callText(card: CardContent, around: Proven): PausableWork<string> {
  const lines = [card.sentence, "", ...(yield* judgedLines(card, around))];
  return lines.join("\n");
}

function* judgedLines(card: CardContent, around: Proven): PausableWork<string[]> {
  const lines = [row("Reason", card.reason)];
  if (card.run_reason !== null) lines.push(row("Run", card.run_reason));
  for (const cause of card.causes) lines.push(row("Cause", cause));
  if (card.rule !== null) lines.push(row("Rule", card.rule.id));
  if (card.risk !== null) lines.push(row("Risk", `${card.risk.score}: ${card.risk.text}`));
  // Added one at a time: a card can have more lines than a function call can take arguments.
  for (const change of furtherChanges(card)) {
    yield;
    for (const line of ["", ...changeLines(change)]) lines.push(line);
  }
  const fields = [...card.fields, ...card.more];
  if (fields.length > 0) lines.push("");
  for (const field of fields) {
    yield;
    for (const line of fieldLines(field)) lines.push(line);
  }
  yield;
  if (card.note !== null) lines.push("", row("Note", card.note));
  lines.push("", row("Undo", card.way_back.text));
  for (const left of card.way_back.residue) lines.push(row("", `cannot be undone: ${left}`));
  if (around.proof !== null) lines.push(row("", around.proof));
  if (around.closes !== null) lines.push(row("", around.closes));
  return lines;
}

/** Changes that no field shows as a diff. */
export function furtherChanges({ fields, changes }: Pick<CardContent, "fields" | "changes">): CardChange[] {
  const drawn = new Set(fields.map(({ path, lines }) => `${path} ${JSON.stringify(lines)}`));
  return changes.filter(({ path, lines }) => !drawn.has(`${path} ${JSON.stringify(lines)}`));
}

/** Shows both sides in full if there is no diff. */
function changeLines({ label, before, after, lines, remarks = [] }: CardChange): string[] {
  const title = `What changes in ${label}${inBrackets(remarks)}:`;
  if (lines.length > 0) return [title, ...diffText(lines)];
  return [
    title,
    ...fieldLines({ label: "now", text: before }),
    ...fieldLines({ label: "after", text: after }),
  ];
}

const diffText = (lines: readonly DiffLine[]): string[] =>
  lines.map(({ kind, text }) => (text === "" ? `  ${SIGNS[kind]}`.trimEnd() : `  ${SIGNS[kind]}${text}`));

const inBrackets = (words: readonly string[]): string => (words.length === 0 ? "" : ` (${words.join("; ")})`);

const WIDTH = 10;

/** Indents continuation lines, so that a line break in a text cannot imitate a new row. */
function row(name: string, text: string): string {
  const [first, ...rest] = text.split("\n");
  const indented = rest.map((line) => (line === "" ? "" : `${" ".repeat(WIDTH)}${line}`));
  return [first === "" ? name : `${name.padEnd(WIDTH)}${first}`, ...indented].join("\n");
}

type TextField = Pick<CardField, "label" | "text"> & Partial<CardField>;

function fieldLines({
  label,
  text,
  lines,
  abridged,
  size,
  remarks = [],
  uncovered = [],
}: TextField): string[] {
  const head = `${label}${inBrackets(size === undefined ? remarks : [size, ...remarks])}:`;
  const others = uncovered.flatMap(fieldLines).map(indented);
  if (lines === undefined)
    return text.includes("\n")
      ? [head, indented(text), ...others]
      : [text === "" ? head : `${head} ${text}`, ...others];
  return [head, ...diffText(lines), ...others, ...(abridged ? [`${label}, in full:`, indented(text)] : [])];
}

/** Indents each line in one pass, because a text can have a hundred thousand lines. */
const indented = (text: string): string => text.replace(/^(?!$)/gm, "  ");

function soFarLines({ so_far, like, given = [] }: CardContext): string[] {
  const last = so_far.last.map(({ step, tool, status }) => `step ${step} ${tool} (${status})`).join(", ");
  const calls = so_far.calls === 0 ? "no calls yet" : `${so_far.calls} so far, the last: ${last}`;
  return [
    row("In run", calls),
    ...given.map(({ at_ms, chars }) => row("Given", `${chars} characters, ${new Date(at_ms).toISOString()}`)),
    row("Earlier", `similar requests: ${like.approved} approved, ${like.denied} denied`),
  ];
}
