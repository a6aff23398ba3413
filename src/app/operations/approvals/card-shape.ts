/** The shape of a card as it is answered. */
import * as z from "zod";
import { APPROVAL_STATUSES } from "../../../model/approval.ts";
import { CARD_FORMATS } from "../../../model/card/template.ts";
import { RISK_FACTORS } from "../../../model/policy/risk-weights.ts";
import { approvalViewShape, nullable } from "../schemas.ts";

const lines = z.array(
  z.strictObject({ kind: z.enum(["same", "added", "removed", "gap"]), text: z.string() }),
);

const remarks = z.array(z.string()).optional();
const plainField = z.strictObject({
  label: z.string().meta({ description: "in quotes where the manifest does not declare the argument" }),
  path: z.string(),
  as: z.enum(CARD_FORMATS),
  text: z.string().meta({ description: "the whole value" }),
  size: z.string().optional().meta({ description: "counts of a long value" }),
  undeclared: z.literal(true).optional(),
  remarks,
});

const field = plainField.extend({
  lines: lines.optional(),
  abridged: z.literal(true).optional().meta({ description: "the diff leaves unchanged lines out" }),
  uncovered: z.array(plainField).optional().meta({ description: "members that the diff does not cover" }),
});

const change = z.strictObject({
  label: z.string(),
  path: z.string().optional(),
  before: z.string(),
  after: z.string(),
  lines: lines.meta({ description: "empty where the two are too long to compare" }),
  remarks,
});

/** The judged part; a call of a plan has it, too. */
const judgedShape = z.strictObject({
  sentence: z.string(),
  parts: z.array(z.strictObject({ text: z.string(), value: z.boolean() })),
  fields: z.array(field),
  more: z.array(field),
  changes: z.array(change),
  note: nullable(z.string()),
  reason: z.string(),
  run_reason: nullable(z.string()),
  rule: nullable(z.strictObject({ id: z.string(), reason: nullable(z.string()) })),
  causes: z.array(z.string()),
  risk: nullable(
    z.strictObject({
      score: z.int(),
      factors: z.array(
        z.strictObject({ factor: z.enum(RISK_FACTORS), label: z.string(), points: z.number() }),
      ),
      text: z.string(),
    }),
  ),
  irreversible: z.boolean(),
  way_back: z.strictObject({
    tool: nullable(z.string()),
    residue: z.array(z.string()),
    text: z.string(),
  }),
});

const asked = approvalViewShape.pick({
  actor: true,
  run_id: true,
  tool: true,
  tenant: true,
  kind: true,
  step: true,
  arg_names: true,
  approvers: true,
  votes: true,
  requested_ms: true,
  expires_ms: true,
});

export const cardShape = z.strictObject({
  approval_id: z.string(),
  status: z.enum(APPROVAL_STATUSES),
  ...asked.shape,
  ...judgedShape.shape,
  /** As far as they may be shown; null where they are not kept, or no longer. */
  arguments: z.unknown(),
  before: z.unknown(),
  so_far: z.strictObject({
    calls: z.int(),
    last: z.array(z.strictObject({ step: z.int(), tool: z.string(), status: z.string() })),
  }),
  like: z.strictObject({ approved: z.int(), denied: z.int() }),
  proof: nullable(z.string()),
  closes: nullable(z.string()),
  card_hash: nullable(z.string()),
  text: z.string(),
});
