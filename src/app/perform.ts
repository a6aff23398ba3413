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
  const run_id = op.path.startsWith("/v1/runs/{id}") ? runId.safeParse(raw.params["id"]).data : undefined;
  if (run_id !== undefined) await hideForeignRun(call.app, call.principal, run_id);
  const allowed = op.any_role === true || op.role_or_delegate === true || hasRole(call.principal, op.role);
  if (!allowed) throw forbidden(ROLE_MESSAGES[op.role]);
  const why = op.feature?.(call.app) ?? null;
  if (why !== null) throw new SvcError("not_enabled", why);
  const params = read(op.params, raw.params, "");
  const query = read(op.query, raw.query, "");
  const body = read(op.body, raw.body === undefined ? {} : raw.body, "body");
  return op.run(call, { params, query, body });
}

function read(schema: z.ZodType | undefined, value: unknown, root: string): unknown {
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new SvcError("invalid", describeIssues(parsed.error, root));
}
