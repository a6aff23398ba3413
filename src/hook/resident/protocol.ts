/**
 * The lines between a carrier and the resident process. A carrier sends `svc1 call <client>`, the event, and a
 * NUL byte, which JSON never contains. The answer is `pass` or `refuse`, lines for standard output (`o `) and standard
 * error (`e `), and `end`. `hold <seconds>` before it asks the carrier to wait longer, and `wait` only shows that the
 * carrier is still there. An answer without `end` counts as none. The launcher of `svc run` adds a fourth word with its
 * evidence to the events of its confined command.
 */
import { type HookAnswer, isRecord } from "../clients/clients.ts";
import type { ConfinedCaller } from "./services.ts";

export const CARRIER_PROTOCOL = "svc1";
/** A longer event is refused unread. */
export const MAX_EVENT_BYTES = 33_554_432;
/** Total time for an answer, beyond a hold. Carriers count it too. */
export const ANSWER_MS = 4_000;
/** The process refuses this much earlier than a carrier gives up, so that its reason arrives. */
export const ANSWER_MARGIN_MS = 300;

const lines = (mark: "o" | "e", text: string): string =>
  text === ""
    ? ""
    : text
        .split("\n")
        .map((line) => `${mark} ${line}\n`)
        .join("");

export function encodeAnswer({ code, out, err }: HookAnswer): string {
  // A refusal has text on standard error and nothing on standard output.
  return code === 0
    ? `pass\n${lines("o", out)}${lines("e", err)}end\n`
    : `refuse\n${lines("e", err || out || "the call is refused")}end\n`;
}

/** Null for half an answer, and for one that is not of this protocol. */
export function decodeAnswer(text: string): HookAnswer | null {
  const whole = /^(?:hold \d+\n|wait\n)*(pass|refuse)\n((?:[oe] [^\n]*\n)*)end\n$/.exec(text);
  if (whole === null) return null;
  const [, word, body = ""] = whole;
  const of = (mark: string) =>
    body
      .split("\n")
      .filter((line) => line.startsWith(mark))
      .map((line) => line.slice(2))
      .join("\n");
  const err = of("e ");
  if (word === "pass") return { code: 0, out: of("o "), err };
  return { code: 2, out: "", err: err === "" ? "svc: the call is refused" : err };
}

export const encodeConfined = (confined: ConfinedCaller): string =>
  Buffer.from(JSON.stringify(confined)).toString("base64url");

/** Null for words that no launcher wrote. */
export function decodeConfined(word: string): ConfinedCaller | null {
  try {
    const given: unknown = JSON.parse(Buffer.from(word, "base64url").toString("utf8"));
    if (!isRecord(given)) return null;
    const { run_id, secret, workspace } = given;
    if (typeof run_id !== "string" || typeof secret !== "string" || typeof workspace !== "string")
      return null;
    return { run_id, secret, workspace };
  } catch {
    return null;
  }
}
