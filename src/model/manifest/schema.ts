/**
 * The shape of a manifest entry as a person writes it. What one field can say about itself is here, what
 * fields say about each other is in `rules.ts`, and the published JSON Schema is made from this schema.
 * Every optional field may also be null, so that a normalised manifest is itself a valid entry.
 */
import * as z from "zod";
import { tryDuration } from "../../kernel/duration.ts";
import { isGlob } from "../../kernel/glob.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { tryPath, tryTemplatePath } from "../../kernel/paths.ts";
import { titlePieces } from "../card/sentence.ts";
import { CARD_FORMATS } from "../card/template.ts";
import { BLAST_RADII, EFFECTS, LIFECYCLES } from "./types.ts";

const VERSION_CHARS = 128;
const LABEL_CHARS = 256;
export const READ_BACK = {
  retries: { max: 20, default: 3 },
  backoff_ms: { max: 60_000, default: 200 },
} as const;
export const BEFORE = { max_bytes: { max: 8_388_608, default: 1_048_576 }, max_reads: 10 } as const;

/** White space, and everything that a reader cannot see: controls, format characters, lone surrogates. */
const INVISIBLE = /[\s\p{C}\p{Z}]/u;
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
const PATH_HINT = "write $args.name, $result.name or $args.list[0]";

const toolName = z
  .string()
  .min(1)
  .max(LIMITS.tool_chars)
  .superRefine((name, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if (INVISIBLE.test(name)) refuse("must not hold spaces, control or invisible characters");
    if (isGlob(name)) refuse("must be the name of one tool, not a glob (no *, ?, { or })");
    if (name.startsWith("svc.")) refuse('must not begin with "svc."; those tools are the service\'s own');
  })
  .meta({ pattern: "^(?!svc\\.)[^\\s*?{}]+$" });

const label = z
  .string()
  .min(1)
  .max(LABEL_CHARS)
  .refine((text) => !UNPRINTABLE.test(text), "must not hold control characters");

const permission = z
  .string()
  .min(1)
  .max(LIMITS.permission_chars)
  .superRefine((name, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if (INVISIBLE.test(name)) refuse("must not hold spaces, control or invisible characters");
    if (isGlob(name)) refuse("must be one permission, not a glob (no *, ?, { or })");
  });

const version = z.union([
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

const anyPath = z
  .string()
  .refine((text) => tryPath(text) !== undefined, `is not a path; ${PATH_HINT}`)
  .meta({ pattern: "^\\$(args|result)" });

const argsPath = z
  .string()
  .superRefine((text, context) => {
    const path = tryPath(text);
    if (path === undefined) context.addIssue({ code: "custom", message: `is not a path; write $args.name` });
    else if (path.root !== "args") {
      context.addIssue({
        code: "custom",
        message: "must be a path into $args: no result exists yet when a repeat is refused",
      });
    }
  })
  .meta({ pattern: "^\\$args" });

const template = z.record(z.string(), z.unknown());

/** The path must lead to a part: ignoring all of the answer would take every state for the same. */
const beforePath = z
  .string()
  .superRefine((text, context) => {
    const path = tryTemplatePath(text);
    const message =
      path?.root !== "before"
        ? "is not a path into $before; write $before.name"
        : path.keys.length === 0
          ? "would ignore all that is read; name the part that changes by itself, such as $before.mtime"
          : undefined;
    if (message !== undefined) context.addIssue({ code: "custom", message });
  })
  .meta({ pattern: "^\\$before[.\\[]" });

const until = z
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
  return ms > 0 ? undefined : "must be longer than nothing";
}

const compensation = z.strictObject({
  tool: toolName.describe("The tool that undoes the call."),
  args: template
    .nullish()
    .describe("Its arguments; a string that is a path ($args.x, $result.x) becomes the value there."),
  kind: z.enum(["inverse", "compensation"]).nullish().meta({
    default: "compensation",
    description: "inverse restores the exact state; compensation makes amends.",
  }),
  residue: z.array(z.string().min(1).max(1_000)).nullish().describe("What the undo cannot take back."),
  requires_approval: z
    .boolean()
    .nullish()
    .meta({ default: false, description: "The undo waits for an approval." }),
  when_absent: z
    .strictObject({
      tool: toolName.describe("The tool that undoes the call where nothing was there before."),
      args: template.nullish().describe("Its arguments, built like those of the compensation."),
    })
    .nullish()
    .describe("The undo where `before.absent` shows that nothing was there."),
  until: until
    .nullish()
    .describe("How long the undo works: a duration from success, or a path to a time in $result or $args."),
});

const before = z.strictObject({
  tool: toolName.describe("A tool that only reads, called before the call and after it."),
  args: z
    .union([template, z.array(template).min(2).max(BEFORE.max_reads)])
    .nullish()
    .describe(
      "Its arguments; a string that is a path into $args becomes the value there. A list reads once for each item, such as both ends of a move.",
    ),
  absent: z
    .unknown()
    .optional()
    .describe("What the answer holds where nothing is there: objects match in part, lists whole."),
  ignore: z.array(beforePath).max(100).nullish().describe("Paths into the answer that change by themselves."),
  max_bytes: z.number().int().min(1).max(BEFORE.max_bytes.max).nullish().meta({
    default: BEFORE.max_bytes.default,
    description: "A longer answer counts as a failed read.",
  }),
  required: z.boolean().nullish().meta({
    default: true,
    description: "false lets the call pass when the read fails; it can then not be undone.",
  }),
});

const verification = z
  .strictObject({
    tool: toolName.describe("A tool that only reads, called after the undo."),
    args: template.nullish().describe("Its arguments, built like those of the compensation."),
    expect: z.unknown().optional().describe("What the answer must hold: objects match in part, lists whole."),
    retries: z
      .number()
      .int()
      .min(0)
      .max(READ_BACK.retries.max)
      .nullish()
      .meta({ default: READ_BACK.retries.default, description: "Further reads after the first." }),
    backoff_ms: z.number().int().min(0).max(READ_BACK.backoff_ms.max).nullish().meta({
      default: READ_BACK.backoff_ms.default,
      description: "Wait before the second read; doubles each time.",
    }),
  })
  .meta({ required: ["tool", "expect"] });

const risk = z.looseObject({
  data_class: label.nullish().describe("The class of the data touched, such as pii or public."),
  blast_radius: z.enum(BLAST_RADII).nullish().describe("How far a mistake reaches."),
});

const audit = z.strictObject({
  redaction: z.array(anyPath).nullish().describe("Paths whose values are never captured."),
  retention_days: z
    .number()
    .int()
    .min(1)
    .max(36_500)
    .nullish()
    .describe("A run that called the tool is kept this long at least."),
  evidence_export: z
    .literal("required")
    .nullish()
    .describe("A signed bundle must be archived before a run is deleted."),
});

const drill = z.strictObject({
  args: template.nullish().describe("The arguments, as they are: an example that does no harm."),
  expect: z.unknown().optional().describe("What the result must hold: objects match in part, lists whole."),
});

const TITLE_CHARS = 300;
const PLACE_HINT = "write a place as {$args.name}";

/** Every brace is a place: one that is none would be shown to an approver as it stands. */
const title = label.max(TITLE_CHARS).superRefine((text, context) => {
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  for (const piece of titlePieces(text)) {
    if ("text" in piece) {
      if (/[{}]/.test(piece.text)) refuse(`holds a brace that is no place; ${PLACE_HINT}`);
    } else if (piece.path === undefined) {
      refuse(`${piece.place} is not a place of this call; ${PLACE_HINT}`);
    }
  }
});

const cardPath = z
  .string()
  .refine((text) => tryPath(text)?.root === "args", "is not a path into the arguments; write $args.name")
  .meta({ pattern: "^\\$args" });

const card = z.strictObject({
  title: title
    .nullish()
    .describe("One sentence that says what the call does, with places such as {$args.amount}."),
  fields: z
    .array(
      z.strictObject({
        label: label.max(100),
        path: cardPath,
        as: z.enum(CARD_FORMATS).nullish().meta({ default: "text" }),
      }),
    )
    .max(50)
    .nullish()
    .describe("What an approver looks at first, in this order."),
  reveal: z
    .array(cardPath)
    .max(100)
    .nullish()
    .describe(
      "Paths that whoever may decide sees in full, although audit.redaction names them; credentials never.",
    ),
  note: label.max(1_000).nullish().describe("A sentence that the approver should know."),
});

export const manifestEntrySchema = z.strictObject({
  tool: toolName.describe("The tool's name, as the agent calls it."),
  version: version.nullish().meta({
    default: "1",
    description: "Any text or whole number; the newest approved version is in force.",
  }),
  lifecycle: z.enum(LIFECYCLES).nullish().meta({ default: "approved" }),
  effect: z
    .enum([...EFFECTS, "read_only"])
    .describe("What the call does to the world; read_only is another word for read."),
  permission: permission.describe("What a run's scope must hold to call the tool."),
  owner: label.nullish().describe("Who answers for the tool."),
  requires: z
    .array(toolName)
    .max(1_000)
    .nullish()
    .describe("Tools that must have succeeded earlier in the run."),
  idempotency: z
    .union([argsPath, z.array(argsPath).max(32)])
    .nullish()
    .describe(
      "A path or a list of paths; a call with the same values is refused while the first one stands.",
    ),
  risk: risk.nullish().describe("Labels for risk scoring, policy and retention; further labels are free."),
  compensation: compensation.nullish(),
  verification: verification.nullish(),
  before: before.nullish().describe("Reads what is there before the call, so that the undo can restore it."),
  audit: audit.nullish(),
  drill: drill.nullish().describe("A harmless example of the call, by which svc drill proves its undo."),
  card: card.nullish().describe("How a person who decides about the call is shown it."),
});

export const manifestFileSchema = z.array(manifestEntrySchema);

export type ManifestEntry = z.infer<typeof manifestEntrySchema>;
