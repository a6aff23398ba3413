/** Questions to the person at a terminal. A script without a terminal decides when it names the request. */
import { createInterface } from "node:readline/promises";
import { invalidError } from "../kernel/errors.ts";
import type { CommandIo } from "./io.ts";

/** Card hash of a decision without a card to show. It matches no card, so nothing unseen is decided. */
export const NO_CARD_SHOWN = `sha256:${"0".repeat(64)}`;

export const canAsk = (io: CommandIo): boolean => process.stdin.isTTY === true && io.tty;

export async function typedAnswer(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  return (await lines.question(question).finally(() => lines.close())).trim();
}

/** Asks the person who has just read the card or the plan. */
export async function confirmShown(
  io: CommandIo,
  question: string,
  yes: string | boolean | undefined,
): Promise<void> {
  if (yes !== undefined || !canAsk(io)) return;
  const answer = (await typedAnswer(`${question}? Type yes: `)).toLowerCase();
  if (answer !== "yes" && answer !== "y") throw invalidError("nothing was decided");
}
