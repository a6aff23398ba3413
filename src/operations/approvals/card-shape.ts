/** Response schema of an approval card. */
import * as z from "zod";
import { APPROVAL_STATUSES, approvalViewShape } from "../../govern/approvals/approval.ts";
import { cardContentSchema, cardContextSchema } from "../../govern/cards/card-schema.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";

const asked = approvalViewShape.pick({
  actor: true,
  acting: true,
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
  ...cardContentSchema.shape,
  /** Argument values that may be shown; null if they are not stored or no longer stored. */
  arguments: z.unknown(),
  before: z.unknown(),
  ...cardContextSchema.shape,
  line: z
    .string()
    .optional()
    .meta({ description: "the manifest's sentence on the call for readers of the run" }),
  card_hash: nullableSchema(z.string()),
  shown: z
    .strictObject({
      key: z.string().meta({ description: "key of the hash" }),
      hash: z.string().meta({ description: "keyed hash of the content, which a passkey signs" }),
      content: z.unknown().meta({ description: "the signed part of the card" }),
    })
    .optional()
    .meta({
      description: "what a signature covers, for the offline viewer; only if the approval has to be signed",
    }),
  text: z.string(),
});
