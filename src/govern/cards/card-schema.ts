/** Schemas of what a card shows: the part that its hash covers, and the context. */
import * as z from "zod";
import { CARD_FORMATS } from "../../rules/manifest/card-template.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { RISK_FACTORS } from "../../rules/policy/checks/default-weights.ts";

const lines = z.array(
  z.strictObject({ kind: z.enum(["same", "added", "removed", "gap"]), text: z.string() }),
);

const remarks = z.array(z.string()).exactOptional();
const plainField = z.strictObject({
  label: z.string().meta({ description: "in quotes if the manifest does not declare the argument" }),
  path: z.string(),
  as: z.enum(CARD_FORMATS),
  /** Safe to show anywhere: characters that would move or hide other text are escaped. */
  text: z.string().meta({ description: "the whole value" }),
  size: z.string().exactOptional().meta({ description: "counts of a long value" }),
  /** Neither the manifest nor the input schema of the tool names this argument. */
  undeclared: z.literal(true).exactOptional(),
  remarks,
});

const field = plainField.extend({
  /** For `diff`: current and new value, line by line. */
  lines: lines.exactOptional(),
  abridged: z.literal(true).exactOptional().meta({ description: "the diff omits unchanged lines" }),
  uncovered: z
    .array(plainField)
    .exactOptional()
    .meta({ description: "members that the diff does not cover" }),
});

const change = z.strictObject({
  label: z.string(),
  /** Argument that makes the change; absent for an undo. */
  path: z.string().exactOptional(),
  before: z.string(),
  after: z.string(),
  lines: lines.meta({ description: "empty if the values are too long to compare" }),
  remarks,
});

/** Part of a card that the approver decides on. The card hash covers it, and a planned call has it too. */
export const cardContentSchema = z.strictObject({
  sentence: z.string(),
  /** Words of the manifest and values of the call. */
  parts: z.array(z.strictObject({ text: z.string(), value: z.boolean() })),
  fields: z.array(field),
  /** Arguments that neither the sentence nor the fields show in full, so that no part of a call is hidden. */
  more: z.array(field),
  changes: z.array(change),
  note: nullableSchema(z.string()),
  reason: z.string(),
  run_reason: nullableSchema(z.string()),
  rule: nullableSchema(z.strictObject({ id: z.string(), reason: nullableSchema(z.string()) })),
  causes: z.array(z.string()),
  risk: nullableSchema(
    z.strictObject({
      score: z.int(),
      factors: z.array(
        z.strictObject({ factor: z.enum(RISK_FACTORS), label: z.string(), points: z.number() }),
      ),
      /** Factors in words; they add up to the score. */
      text: z.string(),
    }),
  ),
  irreversible: z.boolean(),
  way_back: z.strictObject({
    tool: nullableSchema(z.string()),
    residue: z.array(z.string()),
    text: z.string(),
  }),
  /** Approving takes a second gesture, although the call can be undone. */
  confirm: z.literal(true).optional(),
});

/** Context outside the hashed part of a card. It can change while the request is pending. */
export const cardContextSchema = z.strictObject({
  /** Calls of the same run so far. */
  so_far: z.strictObject({
    calls: z.int(),
    last: z.array(z.strictObject({ step: z.int(), tool: z.string(), status: z.string() })),
  }),
  /** Decisions on earlier requests of the same agent for the same tool. */
  like: z.strictObject({ approved: z.int(), denied: z.int() }),
  /** Texts of people that the run was given, by time and length; absent without them. */
  given: z.array(z.strictObject({ at_ms: z.int(), chars: z.int() })).optional(),
  /** When a drill last tested the undo, and when the undo expires. Null if neither is known. */
  proof: nullableSchema(z.string()),
  closes: nullableSchema(z.string()),
});
