/** Signatures of a request, for the program that makes the call and verifies them itself. */
import * as z from "zod";
import { stepKey } from "../../govern/document-keys.ts";
import { planSubject } from "../../govern/signing/draft.ts";
import { assertionSchema, signedPayloadSchema } from "../../govern/signing/payload.ts";
import { notFoundError } from "../../kernel/errors.ts";
import type { ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { givenId } from "../schemas.ts";

export const getSignatures = defineOperation({
  id: "get_signatures",
  summary: "Read the signatures of a request of your run, and the salt of its hashes",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ approval_id: givenId("apr_<uuid>") }),
  output: z.strictObject({
    salt: z.string().meta({ description: "key of the run's hashes" }),
    signatures: z.array(
      z.strictObject({
        payload: signedPayloadSchema,
        assertion: assertionSchema,
        subject: z.unknown().optional().meta({ description: "for a plan: the signed plan" }),
      }),
    ),
  }),
  errors: { not_found: "unknown request, or one of another agent's run" },
  async run({ app, principal }, { approval_id }) {
    const { store } = app.core;
    const approval = await store.get("approvals", approval_id);
    const run = approval && (await store.get("runs", approval.run_id));
    if (approval === undefined || run === undefined || run.principal !== principal.id)
      throw notFoundError(`unknown approval request ${approval_id}`, "unknown_approval");
    const { signatures = [], plan } = approval.internal;
    const planned = plan === undefined ? undefined : await store.get("plans", plan);
    return {
      salt: run.salt,
      signatures: signatures.map(({ payload, assertion }) => ({
        payload,
        assertion,
        ...(payload.kind === "plan" && planned !== undefined ? { subject: planSubject(planned) } : {}),
      })),
    };
  },
});

/** Salt and signatures of the approval of a step's undo; undefined if the undo asked for none. */
export async function undoSignatures({ core }: ServiceApp, run_id: string, step: number): Promise<unknown> {
  const [run, doc] = await Promise.all([
    core.store.get("runs", run_id),
    core.store.get("steps", stepKey(run_id, step)),
  ]);
  if (run === undefined || doc?.undo_request === undefined) return undefined;
  const approval = await core.store.get("approvals", doc.undo_request);
  return { salt: run.salt, signatures: approval?.internal.signatures ?? [] };
}
