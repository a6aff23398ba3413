/**
 * Schema of a manifest entry. Its input is what authors write, and the source of the published JSON Schema. Its output
 * is the normalised manifest with every default. Rules across fields are in `rules.ts`. Every optional field can be
 * null, so that a normalised manifest is a valid entry.
 */
import * as z from "zod";
import type { JsonValue } from "../../kernel/json/json.ts";
import { CARD_FORMATS } from "./card-template.ts";
import { declaredFields, toUndeclared } from "./declared-fields.ts";
import {
  anyPathSchema,
  argsPathSchema,
  beforePathSchema,
  cardPathSchema,
  cardTitleSchema,
  jsonValueSchema,
  labelSchema,
  permissionSchema,
  templateSchema,
  toolNameSchema,
  toTemplate,
  undoDeadlineSchema,
  versionSchema,
} from "./field-schemas.ts";
import { httpSchema } from "./http-schema.ts";

export const TOOL_EFFECTS = ["read", "idempotent", "reversible", "compensable", "irreversible"] as const;
export const MANIFEST_LIFECYCLES = ["draft", "approved", "deprecated"] as const;
export const BLAST_RADII = ["none", "single", "team", "org", "external"] as const;

export const READ_BACK_LIMITS = {
  retries: { max: 20, default: 3 },
  backoff_ms: { max: 60_000, default: 200 },
} as const;
export const BEFORE_LIMITS = { max_bytes: { max: 8_388_608, default: 1_048_576 }, max_reads: 10 } as const;

const toNull = <Value>(value: Value): NonNullable<Value> | null => value ?? null;
const toList = <Item>(list: Item[] | null | undefined): Item[] => list ?? [];

const compensation = z
  .strictObject({
    tool: toolNameSchema.describe("The tool that undoes the call."),
    args: templateSchema
      .nullish()
      .describe("Its arguments; a string that is a path ($args.x, $result.x) becomes the value there.")
      .transform(toTemplate),
    kind: z
      .enum(["inverse", "compensation"])
      .nullish()
      .meta({
        default: "compensation",
        description: "inverse restores the exact state; compensation offsets the effect.",
      })
      .transform((kind) => kind ?? "compensation"),
    residue: z
      .array(z.string().min(1).max(1_000))
      .nullish()
      .describe("Side effects that remain after the undo. A path into $before adds the texts there.")
      .transform(toList),
    requires_approval: z
      .boolean()
      .nullish()
      .meta({ default: false, description: "The undo requires approval." })
      .transform((required) => required ?? false),
    when_absent: z
      .strictObject({
        tool: toolNameSchema.describe("The tool that undoes a call that created its target."),
        args: templateSchema
          .nullish()
          .describe("Its arguments, built like those of the compensation.")
          .transform(toTemplate),
      })
      .nullish()
      .describe("The undo if `before.absent` matches: the target did not exist before the call.")
      .transform(toUndeclared),
    until: undoDeadlineSchema
      .nullish()
      .describe("When the undo expires: a duration after success, or a path to a time in $result or $args.")
      .transform(toUndeclared),
  })
  .transform(declaredFields);

/** Fields with their default value are removed from the normalised manifest. */
const before = z
  .strictObject({
    tool: toolNameSchema.describe("A tool that only reads, called before the call and after it."),
    args: z
      .union([templateSchema, z.array(templateSchema).min(2).max(BEFORE_LIMITS.max_reads)])
      .nullish()
      .describe(
        "Its arguments; a string that is a path into $args becomes the value there. A list reads once per item. With `required: false`, a path into $before is taken from the state that the caller reported.",
      )
      .transform((args) => args ?? {}),
    absent: jsonValueSchema
      .optional()
      .describe("Answer for a missing target: objects match partially, lists entirely.")
      .transform(toUndeclared),
    ignore: z
      .array(beforePathSchema)
      .max(100)
      .nullish()
      .describe("Paths into the answer that change without a call.")
      .transform((paths) => (paths == null || paths.length === 0 ? undefined : paths)),
    max_bytes: z
      .number()
      .int()
      .min(1)
      .max(BEFORE_LIMITS.max_bytes.max)
      .nullish()
      .meta({
        default: BEFORE_LIMITS.max_bytes.default,
        description: "A longer answer counts as a failed read.",
      })
      .transform((bytes) => (bytes == null || bytes === BEFORE_LIMITS.max_bytes.default ? undefined : bytes)),
    required: z
      .boolean()
      .nullish()
      .meta({
        default: true,
        description: "false allows the call if the read fails; the call then cannot be undone.",
      })
      .transform((required): false | undefined => (required === false ? required : undefined)),
    parts: z
      .boolean()
      .nullish()
      .meta({
        default: false,
        description:
          "The compensation restores each part that is as the call left it, and names the others. A conflict does not stop it.",
      })
      .transform((parts): true | undefined => (parts === true ? parts : undefined)),
  })
  .transform(declaredFields);

const expectedRead = (when: string) =>
  z
    .strictObject({
      tool: toolNameSchema.describe(`A tool that only reads, called after ${when}.`),
      args: templateSchema
        .nullish()
        .describe("Its arguments, built like those of the compensation.")
        .transform(toTemplate),
      expect: jsonValueSchema
        .optional()
        .describe("Expected answer: objects match partially, lists entirely."),
      retries: z
        .number()
        .int()
        .min(0)
        .max(READ_BACK_LIMITS.retries.max)
        .nullish()
        .meta({ default: READ_BACK_LIMITS.retries.default, description: "Additional reads after the first." })
        .transform((retries) => retries ?? READ_BACK_LIMITS.retries.default),
      backoff_ms: z
        .number()
        .int()
        .min(0)
        .max(READ_BACK_LIMITS.backoff_ms.max)
        .nullish()
        .meta({
          default: READ_BACK_LIMITS.backoff_ms.default,
          description: "Wait before the second read; doubles each time.",
        })
        .transform((ms) => ms ?? READ_BACK_LIMITS.backoff_ms.default),
    })
    .meta({ required: ["tool", "expect"] })
    // `entryRules` refuses an entry without the expected answer.
    .transform((entry) => ({ ...entry, expect: entry.expect as JsonValue }));

const verification = expectedRead("the undo");
const effectCheck = expectedRead("a successful call");

const risk = z
  .object({
    data_class: labelSchema
      .nullish()
      .describe("Class of the affected data, such as pii or public.")
      .transform(toNull),
    blast_radius: z.enum(BLAST_RADII).nullish().describe("How far a mistake can reach.").transform(toNull),
  })
  .catchall(jsonValueSchema);

const audit = z.strictObject({
  redaction: z
    .array(anyPathSchema)
    .nullish()
    .describe("Paths whose values are never captured.")
    .transform(toList),
  retention_days: z
    .number()
    .int()
    .min(1)
    .max(36_500)
    .nullish()
    .describe("Minimum retention of runs that called the tool.")
    .transform(toNull),
  evidence_export: z
    .literal("required")
    .nullish()
    .describe("A signed bundle must be archived before a run is deleted.")
    .transform(toNull),
});

const drill = z
  .strictObject({
    args: templateSchema.nullish().describe("Literal arguments of a harmless example.").transform(toTemplate),
    expect: jsonValueSchema.optional().describe("Expected result: objects match partially, lists entirely."),
  })
  .transform(declaredFields);

const card = z
  .strictObject({
    title: cardTitleSchema
      .nullish()
      .describe("One sentence that describes the call, with placeholders such as {$args.amount}.")
      .transform(toNull),
    fields: z
      .array(
        z.strictObject({
          label: labelSchema.max(100).describe("Name of the field on the card."),
          path: cardPathSchema.describe("Argument to show, such as $args.amount."),
          as: z
            .enum(CARD_FORMATS)
            .nullish()
            .meta({ default: "text", description: "Format of the value." })
            .transform((format) => format ?? "text"),
        }),
      )
      .max(50)
      .nullish()
      .describe("Fields that the card shows first, in this order.")
      .transform(toList),
    reveal: z
      .array(cardPathSchema)
      .max(100)
      .nullish()
      .describe("Redacted paths that approvers see in full; credentials stay hidden.")
      .transform(toList),
    note: labelSchema.max(1_000).nullish().describe("A note for the approver.").transform(toNull),
    confirm: z
      .boolean()
      .nullish()
      .meta({
        default: false,
        description: "Approving takes a second gesture, and each call is approved separately.",
      })
      .transform((confirm): true | undefined => (confirm === true ? confirm : undefined)),
    line: cardTitleSchema
      .nullish()
      .describe(
        "One sentence that everybody who can read the run sees, with placeholders for values that they may see.",
      )
      .transform(toUndeclared),
  })
  .transform(declaredFields);

export const manifestEntrySchema = z
  .strictObject({
    tool: toolNameSchema.describe("The tool's name, as the agent calls it."),
    version: versionSchema
      .nullish()
      .meta({
        default: "1",
        description: "Any text or whole number; the newest approved version is active.",
      })
      .transform((text) => String(text ?? "1")),
    lifecycle: z
      .enum(MANIFEST_LIFECYCLES)
      .nullish()
      .meta({
        default: "approved",
        description: "A draft is refused in enforce mode; a deprecated manifest still works.",
      })
      .transform((lifecycle) => lifecycle ?? "approved"),
    effect: z
      .enum([...TOOL_EFFECTS, "read_only"])
      .describe("Effect of the call; read_only is an alias of read.")
      .transform((effect) => (effect === "read_only" ? "read" : effect)),
    permission: permissionSchema.describe("Permission that a run's scope needs to call the tool."),
    owner: labelSchema.nullish().describe("Person or team responsible for the tool.").transform(toNull),
    requires: z
      .array(toolNameSchema)
      .max(1_000)
      .nullish()
      .describe("Tools that must have succeeded earlier in the run.")
      .transform(toList),
    idempotency: z
      .union([argsPathSchema, z.array(argsPathSchema).max(32)])
      .nullish()
      .describe(
        "A path or a list of paths; blocks a call with the same values while an earlier one is active.",
      )
      .transform((paths) => (typeof paths === "string" ? [paths] : (paths ?? []))),
    risk: risk
      .nullish()
      .describe("Labels for risk scoring, policy and retention; you can add custom labels.")
      .transform((labels): z.output<typeof risk> => labels ?? { data_class: null, blast_radius: null }),
    compensation: compensation.nullish().describe("How to undo the call.").transform(toNull),
    verification: verification
      .nullish()
      .describe("How to check that the undo took effect.")
      .transform(toNull),
    before: before
      .nullish()
      .describe("Reads the state before the call, so that the undo can restore it.")
      .transform(toUndeclared),
    effect_check: effectCheck
      .nullish()
      .describe("Reads after a success whether the call did what it said.")
      .transform(toUndeclared),
    audit: audit
      .nullish()
      .describe("Capture of the call and retention of its run.")
      .transform((entry) => entry ?? { redaction: [], retention_days: null, evidence_export: null }),
    http: httpSchema
      .nullish()
      .describe("The HTTP request that calls the tool through svc proxy.")
      .transform(toUndeclared),
    drill: drill
      .nullish()
      .describe("A harmless example; svc drill makes it and tests its undo.")
      .transform(toUndeclared),
    card: card.nullish().describe("How the approval card shows the call.").transform(toUndeclared),
  })
  .transform(declaredFields);

export const manifestFileSchema = z.array(manifestEntrySchema);
