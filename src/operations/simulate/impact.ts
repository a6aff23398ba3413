/** Impact preview: the decision on a call and its consequences, from manifests, policy and grants only. */
import * as z from "zod";
import { tenantBinding } from "../../govern/roles.ts";
import { invalidError, messageOf } from "../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { CompiledPolicy } from "../../rules/policy/compile.ts";
import { type ImpactReport, previewCall, ROLLBACK_OUTLOOKS } from "../../simulate/impact.ts";
import type { ServiceApp } from "../app.ts";
import { proofWordsOf } from "../drills/drill-results.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { anyJson, boundedText, toolSchema } from "../schemas.ts";
import { openSandbox } from "../worker/execute.ts";
import { grantSnapshotFor } from "./jobs.ts";
import { previewDecision } from "./simulate.ts";

interface PreviewInput {
  tool: string;
  args: JsonValue;
  actor: string;
  acting?: readonly string[] | undefined;
  tenant?: string | null | undefined;
  /** Replaces the active policy. */
  policy?: CompiledPolicy | undefined;
}

/** An impact report with drill results of the undo; null if there is nothing to undo. */
export type ProvenImpact = Omit<ImpactReport, "rollback"> & {
  rollback: ImpactReport["rollback"] & { proof: string | null };
};

/** Previews a call for every surface. The CLI also passes a policy file. */
export async function previewImpact(
  { core }: Pick<ServiceApp, "core">,
  input: PreviewInput,
): Promise<ProvenImpact> {
  const { environment, storeKey } = core;
  const { manifests, policy } = core.rules();
  const now_ms = core.env.now();
  const rules = { manifests, policy: input.policy ?? policy };
  const { tool, args, actor, acting } = input;
  const drill = await core.store.get("drills", tool);
  const drills = drill === undefined ? [] : [drill];
  const held = await grantSnapshotFor({ core }, [tool], actor);
  const sandbox = await openSandbox(rules, { now_ms, environment, storeKey, held, drills });
  const report = previewCall(
    sandbox,
    { tool, args, actor, acting, tenant: input.tenant ?? null, environment },
    now_ms,
  );
  const proof = await proofWordsOf(core, tool);
  return { ...report, rollback: { ...report.rollback, proof } };
}

const impactView = z.strictObject({
  tool: z.string(),
  actor: z.string(),
  decision: previewDecision,
  reasons: z.array(z.string()),
  hints: z.array(z.string()),
  by: z.array(z.string()),
  risk: z.strictObject({ score: z.int(), factors: z.record(z.string(), z.number()) }),
  owner: nullableSchema(z.string()),
  labels: z.record(z.string(), z.unknown()),
  requires: z.array(z.string()),
  approval: nullableSchema(z.looseObject({ groups: z.array(z.string()), quorum: z.int() })),
  rollback: z.strictObject({
    outlook: z.enum(ROLLBACK_OUTLOOKS),
    undo_tool: nullableSchema(z.string()),
    kind: nullableSchema(z.enum(["inverse", "compensation"])),
    residue: z.array(z.string()),
    verified: z.boolean(),
    needs_approval: z.boolean(),
    proof: nullableSchema(z.string()).meta({ description: "`proven <when>`, `never proven` or `failing`" }),
  }),
  warnings: z.array(z.string()),
});

export const previewCallImpact = defineOperation({
  id: "impact",
  summary: "Preview a call: decision, risk, approvers, undo and warnings",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    tool: toolSchema,
    args: z
      .string()
      .max(SERVICE_LIMITS.body_bytes)
      .optional()
      .meta({ description: "the arguments, as JSON" }),
    actor: boundedText(256).optional(),
  }),
  output: impactView,
  async run({ app, principal }, query) {
    const args = query.args === undefined ? {} : parseArgs(query.args);
    return previewImpact(app, {
      tool: query.tool,
      args,
      actor: query.actor ?? principal.name,
      tenant: tenantBinding(principal),
    });
  },
});

/** Preview for the caller's own calls: under its own name and within its tenant. */
export const previewOwnCallImpact = defineOperation({
  id: "impact_own",
  summary: "Preview a call of your own",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ tool: toolSchema, args: anyJson }),
  output: impactView,
  run: ({ app, principal: { name: actor, acting, tenant } }, { tool, args }) =>
    previewImpact(app, { tool, args: args as JsonValue, actor, acting, tenant }),
});

export function parseArgs(source: string): JsonValue {
  try {
    return parseJson(source);
  } catch (error) {
    throw invalidError(`args: ${messageOf(error)}`);
  }
}
