/** Schemas of single policy fields. Each error message explains the expected form. */
import * as z from "zod";
import { tryDuration, tryTimestamp } from "../../kernel/duration.ts";
import { messageOf } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { tryPath } from "../../kernel/paths.ts";
import { compileGlob, MAX_GLOB_CHARS } from "../../kernel/text/glob.ts";
import { hoursProblem, zoneProblem } from "./checks/hours.ts";

/** Text of bounded length for which `problemOf` returns null. */
function checked(most: number, problemOf: (text: string) => string | null) {
  return z
    .string()
    .min(1)
    .max(most)
    .superRefine((text, context) => {
      // A text that is too long is already an error, so it is not parsed.
      const problem = text === "" || text.length > most ? null : problemOf(text);
      if (problem !== null) context.addIssue({ code: "custom", message: problem });
    });
}

const ID = /^[A-Za-z0-9][A-Za-z0-9 ._/-]*$/;

export const idSchema = checked(128, (text) =>
  ID.test(text)
    ? null
    : "must begin with a letter or digit and hold only letters, digits, spaces and . _ / -",
);

export const globSchema = checked(MAX_GLOB_CHARS, (text) => {
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
  return ms > 0 ? null : "must be greater than zero";
}

export const policyDurationSchema = checked(32, durationProblem);

/** How far a flow looks back: the current run, or a duration over all runs of the actor. */
export const lookbackSchema = checked(32, (text) => {
  const problem = text === "run" ? null : durationProblem(text);
  return problem === null ? null : `${problem}, or run`;
});

export const timestampSchema = checked(40, (text) =>
  tryTimestamp(text) === undefined
    ? `${JSON.stringify(text)} is not an ISO 8601 date or timestamp such as 2026-12-20T00:00:00Z`
    : null,
);

/** Path into the arguments. A decision comes before the call, so results do not exist yet. */
export const argsPath = checked(512, (text) => {
  const path = tryPath(text);
  if (path === undefined) {
    return `${JSON.stringify(text)} is not a path; write $args.name, $args["any name"] or $args.list[0]`;
  }
  return path.root === "args"
    ? null
    : "$result is not known when a call is decided; use a path that begins with $args";
});

export const timeZoneSchema = checked(64, zoneProblem);
export const hoursSchema = checked(200, hoursProblem);
export const shortText = z.string().min(1).max(SERVICE_LIMITS.reason_chars);
export const groupSchema = z.string().min(1).max(128);

/** Default that is not a value of its key, such as `never`. */
class DefaultInWords {
  readonly words: string;

  constructor(words: string) {
    this.words = words;
  }
}
export const inWords = (words: string): DefaultInWords => new DefaultInWords(words);

/** Adds the meaning and the default of a key for the published JSON Schema. Parsing never fills in the default. */
export const describeField = <T extends z.ZodType>(schema: T, description: string, byDefault?: unknown): T =>
  schema.meta({
    description,
    ...(byDefault instanceof DefaultInWords
      ? { "x-default": byDefault.words }
      : byDefault !== undefined && { default: byDefault }),
  });
