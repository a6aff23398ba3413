/** Impact preview: what a call would be answered and what it would mean. It reads manifests, policy and grants only. */
import * as z from "zod";
import { invalid, messageOf } from "../../kernel/errors.ts";
import { type Json, parseJson } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Policy } from "../../model/policy/compile.ts";
import { boundTo } from "../../model/roles.ts";
import { type ImpactReport, OUTLOOKS, previewCall } from "../../sandbox/impact.ts";
import type { App } from "../app.ts";
import { operation } from "../door/operation.ts";
import { openSandbox } from "../sandbox/work.ts";
import { proofWordsOf } from "./drills/proofs.ts";
import { anyJson, nullable, text, tool } from "./schemas.ts";
import { heldGrants } from "./simulate/jobs.ts";
import { ruling } from "./simulate.ts";

interface PreviewInput {
  tool: string;
  args: Json;
  actor: string;
  tenant?: string | null | undefined;
  /** Instead of the policy in force. */
  policy?: Policy | undefined;
}

/** With what is known of the undo by having tried it; null where there is nothing to undo. */
export type ProvenImpact = Omit<ImpactReport, "rollback"> & {
  rollback: ImpactReport["rollback"] & { proof: string | null };
};

/** For every surface; the command tries a policy file, too. */
export async function previewImpact({ core }: Pick<App, "core">, input: PreviewInput): Promise<ProvenImpact> {
  const { environment, storeKey } = core;
  const { manifests, policy } = core.rules();
  const now_ms = core.env.now();
  const rules = { manifests, policy: input.policy ?? policy };
  const { tool, args, actor } = input;
  const drill = await core.store.get("drills", tool);
  const drills = drill === undefined ? [] : [drill];
  const held = await heldGrants({ core }, [tool], actor);
  const sandbox = await openSandbox(rules, { now_ms, environment, storeKey, held, drills });
  const report = previewCall(
    sandbox,
    { tool, args, actor, tenant: input.tenant ?? null, environment },
    now_ms,
  );
  const proof = await proofWordsOf(core, tool);
  return { ...report, rollback: { ...report.rollback, proof } };
}

const impactView = z.strictObject({
  tool: z.string(),
  actor: z.string(),
  decision: ruling,
  reasons: z.array(z.string()),
  hints: z.array(z.string()),
  by: z.array(z.string()),
  risk: z.strictObject({ score: z.int(), factors: z.record(z.string(), z.number()) }),
  owner: nullable(z.string()),
  labels: z.record(z.string(), z.unknown()),
  requires: z.array(z.string()),
  approval: nullable(z.looseObject({ groups: z.array(z.string()), quorum: z.int() })),
  rollback: z.strictObject({
    outlook: z.enum(OUTLOOKS),
    undo_tool: nullable(z.string()),
    kind: nullable(z.enum(["inverse", "compensation"])),
    residue: z.array(z.string()),
    verified: z.boolean(),
    needs_approval: z.boolean(),
    proof: nullable(z.string()).meta({ description: "`proven <when>`, `never proven` or `failing`" }),
  }),
  warnings: z.array(z.string()),
});

export const impact = operation({
  id: "impact",
  summary: "Preview a call: decision, risk, approvers, undo and warnings",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    tool,
    args: z.string().max(LIMITS.body_bytes).optional().meta({ description: "the arguments, as JSON" }),
    actor: text(256).optional(),
  }),
  output: impactView,
  async run({ app, principal }, query) {
    const args = query.args === undefined ? {} : parseArgs(query.args);
    return previewImpact(app, {
      tool: query.tool,
      args,
      actor: query.actor ?? principal.name,
      tenant: boundTo(principal),
    });
  },
});

/** As the caller would be answered: under its own name and within its tenant. */
export const impactOwn = operation({
  id: "impact_own",
  summary: "Preview a call of one's own",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ tool, args: anyJson }),
  output: impactView,
  run: ({ app, principal: { name: actor, tenant } }, { tool, args }) =>
    previewImpact(app, { tool, args: args as Json, actor, tenant }),
});

export function parseArgs(source: string): Json {
  try {
    return parseJson(source);
  } catch (error) {
    throw invalid(`args: ${messageOf(error)}`);
  }
}
