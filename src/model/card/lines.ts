/** A card as plain text: what a terminal shows, and what an operator's agent reads. */
import type { DiffLine } from "../../kernel/diff.ts";
import type { CardChange, CardField, CardSurroundings, JudgedCard } from "./types.ts";

interface CardHead {
  approval_id: string;
  status: string;
  actor: string;
  run_id: string;
}

const SIGNS = { same: "  ", added: "+ ", removed: "- ", gap: "⋯ " } as const;

export function cardText(head: CardHead, card: JudgedCard, around: CardSurroundings): string {
  const lines = [
    card.sentence,
    "",
    row("Request", `${head.approval_id} (${head.status})`),
    row("Who", `${head.actor}, in run ${head.run_id}`),
    ...judgedLines(card, around),
    "",
    ...soFarLines(around),
  ];
  return lines.map((line) => line.trimEnd()).join("\n");
}

type Proven = Pick<CardSurroundings, "proof" | "closes">;

/** The card of a call of a plan: who asks, and what happened so far, is told once of the plan. */
export function callText(card: JudgedCard, around: Proven): string {
  const lines = [card.sentence, "", ...judgedLines(card, around)];
  return lines.map((line) => line.trimEnd()).join("\n");
}

function judgedLines(card: JudgedCard, around: Proven): string[] {
  const lines = [row("Reason", card.reason)];
  if (card.run_reason !== null) lines.push(row("Run", card.run_reason));
  for (const cause of card.causes) lines.push(row("Cause", cause));
  if (card.rule !== null) lines.push(row("Rule", card.rule.id));
  if (card.risk !== null) lines.push(row("Risk", `${card.risk.score}: ${card.risk.text}`));
  // One by one: a card may have more lines than a call can take arguments.
  for (const change of furtherChanges(card))
    for (const line of ["", ...changeLines(change)]) lines.push(line);
  const fields = [...card.fields, ...card.more];
  if (fields.length > 0) lines.push("");
  for (const field of fields) for (const line of fieldLines(field)) lines.push(line);
  if (card.note !== null) lines.push("", row("Note", card.note));
  lines.push("", row("Way back", card.way_back.text));
  for (const left of card.way_back.residue) lines.push(row("", `cannot be undone: ${left}`));
  if (around.proof !== null) lines.push(row("", around.proof));
  if (around.closes !== null) lines.push(row("", around.closes));
  return lines;
}

/** Changes that no field shows line by line. */
export function furtherChanges({ fields, changes }: Pick<JudgedCard, "fields" | "changes">): CardChange[] {
  const drawn = new Set(fields.map(({ path, lines }) => `${path} ${JSON.stringify(lines)}`));
  return changes.filter(({ path, lines }) => !drawn.has(`${path} ${JSON.stringify(lines)}`));
}

/** Both sides in full where they were not compared. */
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
  lines.map(({ kind, text }) => `  ${SIGNS[kind]}${text}`);

const inBrackets = (words: readonly string[]): string => (words.length === 0 ? "" : ` (${words.join("; ")})`);

const WIDTH = 10;

/** A line break inside a text never begins a row of its own. */
function row(name: string, text: string): string {
  return `${name.padEnd(WIDTH)}${text.replaceAll("\n", `\n${" ".repeat(WIDTH)}`)}`;
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
  const others = uncovered.flatMap(fieldLines).map((line) => `  ${line}`);
  const whole = text.split("\n").map((line) => `  ${line}`);
  if (lines === undefined)
    return text.includes("\n") ? [head, ...whole, ...others] : [`${head} ${text}`, ...others];
  return [head, ...diffText(lines), ...others, ...(abridged ? [`${label}, in full:`, ...whole] : [])];
}

function soFarLines({ so_far, like }: CardSurroundings): string[] {
  const last = so_far.last.map(({ step, tool, status }) => `step ${step} ${tool} (${status})`).join(", ");
  const calls = so_far.calls === 0 ? "no call yet" : `${so_far.calls} so far, the last: ${last}`;
  return [
    row("In run", calls),
    row("Before", `like requests: ${like.approved} approved, ${like.denied} denied`),
  ];
}
