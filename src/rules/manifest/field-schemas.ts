/** Schemas of single manifest fields: names, labels, paths and templates. */
import * as z from "zod";
import { tryDuration } from "../../kernel/duration.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { tryPath, tryTemplatePath } from "../../kernel/paths.ts";
import { isGlob } from "../../kernel/text/glob.ts";
import { parseGraphqlRoute } from "../http/graphql/call.ts";
import { parsePathPattern } from "../http/path-pattern.ts";
import { titlePieces } from "./card-template.ts";

const VERSION_CHARS = 128;
const LABEL_CHARS = 256;
/** White space and invisible characters: controls, format characters, lone surrogates. */
const INVISIBLE = /[\s\p{C}\p{Z}]/u;
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
const PATH_HINT = "write $args.name, $result.name or $args.list[0]";

/** Entries come from a strict reader (`parseYaml`, `parseJson`), so that every free value is JSON. */
export const jsonValueSchema = z.custom<JsonValue>();

export const toolNameSchema = z
  .string()
  .min(1)
  .max(SERVICE_LIMITS.tool_chars)
  .superRefine((name, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if (INVISIBLE.test(name)) refuse("must not hold spaces, control or invisible characters");
    if (isGlob(name)) refuse("must be the name of one tool, not a glob (no *, ?, { or })");
    if (name.startsWith("svc.")) refuse('must not begin with "svc."; those tools are the service\'s own');
  })
  .meta({ pattern: "^(?!svc\\.)[^\\s*?{}]+$" });

export const labelSchema = z
  .string()
  .min(1)
  .max(LABEL_CHARS)
  .refine((text) => !UNPRINTABLE.test(text), "must not hold control characters");

export const permissionSchema = z
  .string()
  .min(1)
  .max(SERVICE_LIMITS.permission_chars)
  .superRefine((name, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if (INVISIBLE.test(name)) refuse("must not hold spaces, control or invisible characters");
    if (isGlob(name)) refuse("must be one permission, not a glob (no *, ?, { or })");
  });

export const versionSchema = z.union([
  z
    .string()
    .min(1)
    .max(VERSION_CHARS)
    .refine((text) => !INVISIBLE.test(text), "must not hold spaces or control characters"),
  z
    .number()
    .refine(
      Number.isSafeInteger,
      "is read as a decimal number, which loses digits; put the version in quotes",
    ),
]);

export const anyPathSchema = z
  .string()
  .refine((text) => tryPath(text) !== undefined, `is not a path; ${PATH_HINT}`)
  .meta({ pattern: "^\\$(args|result)" });

export const argsPathSchema = z
  .string()
  .superRefine((text, context) => {
    const path = tryPath(text);
    if (path === undefined) context.addIssue({ code: "custom", message: `is not a path; write $args.name` });
    else if (path.root !== "args") {
      context.addIssue({
        code: "custom",
        message: "must be a path into $args: no result exists when a repeat is blocked",
      });
    }
  })
  .meta({ pattern: "^\\$args" });

export const templateSchema = z.record(z.string(), jsonValueSchema);
export const toTemplate = (
  args: { [name: string]: JsonValue } | null | undefined,
): { [name: string]: JsonValue } => args ?? {};

/** The path must select a part: ignoring the entire answer would make all states equal. */
export const beforePathSchema = z
  .string()
  .superRefine((text, context) => {
    const path = tryTemplatePath(text);
    const message =
      path?.root !== "before"
        ? "is not a path into $before; write $before.name"
        : path.keys.length === 0
          ? "would ignore the entire answer; name the part that changes without a call, such as $before.mtime"
          : undefined;
    if (message !== undefined) context.addIssue({ code: "custom", message });
  })
  .meta({ pattern: "^\\$before[.\\[]" });

export const undoDeadlineSchema = z
  .string()
  .superRefine((text, context) => {
    const wrong = untilProblem(text);
    if (wrong !== undefined) context.addIssue({ code: "custom", message: wrong });
  })
  .meta({ pattern: "^(\\d{1,15}(ms|s|m|h|d|w)|\\$(args|result)[.\\[].*)$" });

function untilProblem(text: string): string | undefined {
  if (text.startsWith("$")) {
    const path = tryPath(text);
    if (path !== undefined && path.keys.length > 0) return undefined;
    return "is not a path to a time; write $result.name or $args.name";
  }
  const ms = tryDuration(text);
  if (ms === undefined)
    return "is neither a duration counted from success, such as 30d, nor a path to a time, such as $result.expires_at";
  return ms > 0 ? undefined : "must be greater than zero";
}

const TITLE_CHARS = 300;
const PLACE_HINT = "write a placeholder as {$args.name}";

/** Every pair of braces must be a placeholder; others would appear literally on the card. */
export const cardTitleSchema = labelSchema.max(TITLE_CHARS).superRefine((text, context) => {
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  for (const piece of titlePieces(text)) {
    if ("text" in piece) {
      if (/[{}]/.test(piece.text)) refuse(`contains a brace that is not a placeholder; ${PLACE_HINT}`);
    } else if (piece.path === undefined) {
      refuse(`${piece.place} is not a path into the arguments; ${PLACE_HINT}`);
    }
  }
});

export const cardPathSchema = z
  .string()
  .refine((text) => tryPath(text)?.root === "args", "is not a path into the arguments; write $args.name")
  .meta({ pattern: "^\\$args" });

const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?)(?::([1-9]\d{0,4}))?$/;

/** One literal host: a glob or a place would leave open for whom TLS is read. */
export const httpHostSchema = z
  .string()
  .superRefine((text, context) => {
    const match = HOST.exec(text);
    const message =
      match === null
        ? "is not one host such as api.example.com or api.example.com:8443; no scheme, path, glob or place"
        : Number(match[1] ?? 1) > 65_535
          ? "has a port over 65535"
          : undefined;
    if (message !== undefined) context.addIssue({ code: "custom", message });
  })
  .transform((text) => text.toLowerCase());

export const httpMethodSchema = z
  .string()
  .refine(
    (text) => /^[A-Z]{1,20}$/.test(text) && text !== "CONNECT" && text !== "TRACE",
    "must be a method in capitals, such as GET or POST, but not CONNECT or TRACE",
  );

export const graphqlSchema = z.string().superRefine((text, context) => {
  const route = parseGraphqlRoute(text);
  if ("problem" in route) context.addIssue({ code: "custom", message: route.problem });
});

export const httpPathSchema = z.string().superRefine((text, context) => {
  const pattern = parsePathPattern(text);
  if ("problem" in pattern) context.addIssue({ code: "custom", message: pattern.problem });
});
