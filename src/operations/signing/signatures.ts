/** Signatures of a request, for the program that makes the call, or undoes it, and verifies them itself. */
import * as z from "zod";
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { stepKey } from "../../govern/document-keys.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { planSubject } from "../../govern/signing/draft.ts";
import { assertionSchema, signedPayloadSchema } from "../../govern/signing/payload.ts";
import { notFoundError } from "../../kernel/errors.ts";
import { carriesOut } from "../../rollback/backend/remote-worker.ts";
import type { ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { givenId } from "../schemas.ts";

export const getSignatures = defineOperation({
  id: "get_signatures",
  summary: "Read the signatures of a request of your run, or of an undo you carry out, with the salt",
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
  errors: { not_found: "unknown request, or one of another agent's run whose undo you do not carry out" },
  async run({ app, principal }, { approval_id }) {
    const { store } = app.core;
    const approval = await store.get("approvals", approval_id);
    const run = approval && (await store.get("runs", approval.run_id));
    if (approval === undefined || run === undefined || !(await mayRead(app, principal, run, approval)))
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

/** The run's principal may, and the worker that carries out the approved undo. */
async function mayRead(
  { core }: ServiceApp,
  principal: CallerPrincipal,
  run: RunDoc,
  { kind, step }: ApprovalDoc,
): Promise<boolean> {
  if (run.principal === principal.id) return true;
  if (kind !== "compensation" || step === null) return false;
  return carriesOut(core, principal, run.run_id, step);
}

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
