/** A card as plain text: what a terminal shows, and what an operator's agent reads. */
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
  for (const { label, lines: changed } of furtherChanges(card))
    lines.push(
      "",
      `What changes in ${label}:`,
      ...changed.map(({ kind, text }) => `  ${SIGNS[kind]}${text}`),
    );
  const fields = [...card.fields, ...card.more];
  if (fields.length > 0) lines.push("", ...fields.flatMap(fieldLines));
  if (card.note !== null) lines.push("", row("Note", card.note));
  lines.push("", row("Way back", card.way_back.text));
  for (const left of card.way_back.residue) lines.push(row("", `cannot be undone: ${left}`));
  if (around.proof !== null) lines.push(row("", around.proof));
  if (around.closes !== null) lines.push(row("", around.closes));
  return lines;
}

/** What changes beside what a field shows line by line already. */
export function furtherChanges({ fields, changes }: Pick<JudgedCard, "fields" | "changes">): CardChange[] {
  const told = new Set(fields.map(({ lines }) => JSON.stringify(lines)));
  return changes.filter(({ lines }) => !told.has(JSON.stringify(lines)));
}

const WIDTH = 10;

/** A line break inside a text never begins a row of its own. */
function row(name: string, text: string): string {
  return `${name.padEnd(WIDTH)}${text.replaceAll("\n", `\n${" ".repeat(WIDTH)}`)}`;
}

function fieldLines({ label, text, lines }: CardField): string[] {
  if (lines !== undefined) return [`${label}:`, ...lines.map(({ kind, text }) => `  ${SIGNS[kind]}${text}`)];
  if (!text.includes("\n")) return [`${label}: ${text}`];
  return [`${label}:`, ...text.split("\n").map((line) => `  ${line}`)];
}

function soFarLines({ so_far, like }: CardSurroundings): string[] {
  const last = so_far.last.map(({ step, tool, status }) => `step ${step} ${tool} (${status})`).join(", ");
  const calls = so_far.calls === 0 ? "no call yet" : `${so_far.calls} so far, the last: ${last}`;
  return [
    row("In run", calls),
    row("Before", `like requests: ${like.approved} approved, ${like.denied} denied`),
  ];
}
