/**
 * The one way into an operation: the run is hidden from agents it does not belong to, then the role is
 * checked, then whether the feature is enabled, then the input. Every surface comes through here.
 */
import type { z } from "zod";
import { forbidden, SvcError } from "../kernel/errors.ts";
import { hasRole, ROLE_MESSAGES } from "../model/roles.ts";
import { hideForeignRun } from "./access.ts";
import { describeIssues } from "./issues.ts";
import type { Call, Operation } from "./operation.ts";
import { runId } from "./schemas.ts";

export interface RawInput {
  params: Record<string, unknown>;
  query: Record<string, unknown>;
  body: unknown;
}

export async function perform(op: Operation, call: Call, raw: RawInput): Promise<unknown> {
  const params = op.params?.safeParse(raw.params);
  const run_id = op.path.startsWith("/v1/runs/{id}") ? runIdOf(params, raw) : undefined;
  if (run_id !== undefined) {
    const looking = hideForeignRun(call.app, call.principal, run_id);
    if (looking !== undefined) await looking;
  }
  const allowed = op.any_role === true || op.role_or_delegate === true || hasRole(call.principal, op.role);
  if (!allowed) throw forbidden(ROLE_MESSAGES[op.role]);
  const why = op.feature?.(call.app) ?? null;
  if (why !== null) throw new SvcError("not_enabled", why);
  return op.run(call, {
    params: dataOf(params, ""),
    query: dataOf(op.query?.safeParse(raw.query), ""),
    body: dataOf(op.body?.safeParse(raw.body === undefined ? {} : raw.body), "body"),
  });
}

/** Another parameter may be wrong; whether there is such a run is said first. */
function runIdOf(params: z.ZodSafeParseResult<unknown> | undefined, raw: RawInput): string | undefined {
  return params?.success ? (params.data as { id: string }).id : runId.safeParse(raw.params["id"]).data;
}

function dataOf(parsed: z.ZodSafeParseResult<unknown> | undefined, root: string): unknown {
  if (parsed === undefined || parsed.success) return parsed?.data;
  throw new SvcError("invalid", describeIssues(parsed.error, root));
}
