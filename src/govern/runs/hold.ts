/** Legal holds. Retention does not delete a run that a hold covers. */
import * as z from "zod";
import { nullableSchema } from "../../rules/nullable-schema.ts";

export const holdShape = z.strictObject({
  id: z.string(),
  scope: z.strictObject({
    run_id: nullableSchema(z.string()),
    tenant: nullableSchema(z.string()),
    actor: nullableSchema(z.string()),
    tool: nullableSchema(z.string()),
  }),
  reason: z.string(),
  by: z.string(),
  created_ms: z.int(),
  released_ms: nullableSchema(z.int()),
  released_by: nullableSchema(z.string()),
});

export type LegalHold = z.output<typeof holdShape>;
export type HoldScope = LegalHold["scope"];
