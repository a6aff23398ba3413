/** Schemas of the single fields that policies are made of, each saying what to write instead. */
import * as z from "zod";
import { tryDuration, tryTimestamp } from "../../kernel/duration.ts";
import { messageOf } from "../../kernel/errors.ts";
import { compileGlob, MAX_GLOB_CHARS } from "../../kernel/glob.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { tryPath } from "../../kernel/paths.ts";
import { hoursProblem, zoneProblem } from "./hours.ts";

/** A text of bounded length that `problemOf` finds nothing wrong with. */
function checked(most: number, problemOf: (text: string) => string | null) {
  return z
    .string()
    .min(1)
    .max(most)
    .superRefine((text, context) => {
      // What is too long is refused for that, and costs nothing more.
      const problem = text === "" || text.length > most ? null : problemOf(text);
      if (problem !== null) context.addIssue({ code: "custom", message: problem });
    });
}

const ID = /^[A-Za-z0-9][A-Za-z0-9 ._/-]*$/;

export const id = checked(128, (text) =>
  ID.test(text)
    ? null
    : "must begin with a letter or digit and hold only letters, digits, spaces and . _ / -",
);

export const glob = checked(MAX_GLOB_CHARS, (text) => {
  try {
    compileGlob(text);
    return null;
  } catch (error) {
    return messageOf(error);
  }
});

function durationProblem(text: string): string | null {
  const ms = tryDuration(text);
  if (ms === undefined) {
    return `${JSON.stringify(text)} is not a duration; write a whole number and ms, s, m, h, d or w, such as 30m`;
  }
  return ms > 0 ? null : "must be longer than nothing";
}

export const duration = checked(32, durationProblem);

/** How far back a flow looks: this run, or all of the actor's for so long. */
export const lookback = checked(32, (text) => {
  const problem = text === "run" ? null : durationProblem(text);
  return problem === null ? null : `${problem}, or run`;
});

export const timestamp = checked(40, (text) =>
  tryTimestamp(text) === undefined
    ? `${JSON.stringify(text)} is not an ISO 8601 date or timestamp such as 2026-12-20T00:00:00Z`
    : null,
);

/** A path into the arguments: a decision comes before the call, so there is no result yet. */
export const argsPath = checked(512, (text) => {
  const path = tryPath(text);
  if (path === undefined) {
    return `${JSON.stringify(text)} is not a path; write $args.name, $args["any name"] or $args.list[0]`;
  }
  return path.root === "args"
    ? null
    : "$result is not known when a call is decided; use a path that begins with $args";
});

export const zone = checked(64, zoneProblem);
export const hours = checked(200, hoursProblem);
export const shortText = z.string().min(1).max(LIMITS.reason_chars);
export const group = z.string().min(1).max(128);
