/**
 * Dispatches operations for every surface. It hides other agents' runs, then checks the role, then whether the feature
 * is enabled, then the input.
 */
import type { z } from "zod";
import { type CallerPrincipal, hasRole, ROLE_MESSAGES, tenantBinding } from "../../govern/roles.ts";
import { RUN_ID_FORM } from "../../govern/runs/run.ts";
import { forbiddenError, invalidError, SvcError } from "../../kernel/errors.ts";
import type { ServiceApp } from "../app.ts";
import {
  appFor,
  delegationsTo,
  hideForeignRun,
  replicaApp,
  serviceWideOnly,
  undoesOwnRun,
} from "./access.ts";
import { cutLongLists } from "./long-lists.ts";
import type { ApiCaller, ServiceOperation } from "./operation.ts";
import { describeIssues } from "./validation-messages.ts";

/** Describes input errors in the surface's terms; undefined if there are none. */
export type DescribeInputErrors = (error: z.ZodError | undefined) => string | undefined;

const plainly: DescribeInputErrors = (error) =>
  error === undefined ? undefined : describeIssues(error, "input");

export async function dispatchOperation<I extends z.ZodType, O>(
  op: ServiceOperation<I, O>,
  caller: ApiCaller,
  input: z.input<I>,
  complaint: DescribeInputErrors = plainly,
): Promise<O> {
  const run_id = op.run_of?.(input as Partial<z.output<I>>);
  // Check first that the run exists, even if another field is invalid.
  if (typeof run_id === "string" && RUN_ID_FORM.test(run_id)) {
    const looking = hideForeignRun(caller.app, caller.principal, run_id);
    if (looking !== undefined) await looking;
  }
  const allowed = isAllowed(op, caller, run_id);
  // Await only promises: every intent takes this path, and an await costs a turn.
  if (!(typeof allowed === "boolean" ? allowed : await allowed))
    throw forbiddenError(ROLE_MESSAGES[op.role], "role_required");
  assertWithinTenant(op, caller.principal);
  const app = appFor(caller.app, caller.principal);
  const confined = withApp(caller, app);
  const why = op.feature?.(app, confined) ?? null;
  if (why !== null) throw new SvcError("not_enabled", why);
  const parsed = op.input.safeParse(cutLongLists(op.input, input));
  const wrong = complaint(parsed.error);
  if (wrong !== undefined) throw invalidError(wrong);
  const given = parsed.data as z.output<I>;
  // `return await` on purpose: returning a promise from an async function costs three turns instead of one.
  if (op.reads_replica !== true) return await op.run(confined, given);
  return onReplica(confined, (looking) => op.run(looking, given));
}

/** Role requirements of an operation, independent of its input. */
export type RoleGate = Pick<
  ServiceOperation,
  "role" | "any_role" | "role_or_delegate" | "role_or_owner" | "within_tenant" | "run_of"
>;

/** Synchronous for a caller with the role. Otherwise checks for a delegation or ownership of the run. */
function isAllowed(
  op: RoleGate,
  { app, principal }: Pick<ApiCaller, "app" | "principal">,
  run_id: unknown,
): boolean | Promise<boolean> {
  if (op.any_role === true || hasRole(principal, op.role)) return true;
  if (op.role_or_delegate === true) return hasDelegations(app, principal);
  return op.role_or_owner === true && undoesOwnRun(app, principal, run_id);
}

/** Whether the principal has any delegation. The operation decides whether it is sufficient. */
async function hasDelegations(app: ServiceApp, principal: CallerPrincipal): Promise<boolean> {
  return (await delegationsTo(appFor(app, principal), principal.name)).length > 0;
}

/** Rejects a caller without the role before the request body is read. */
export async function assertMayCall(
  op: RoleGate,
  caller: Pick<ApiCaller, "app" | "principal">,
  run_id?: string,
): Promise<void> {
  if (op.run_of !== undefined && run_id !== undefined && RUN_ID_FORM.test(run_id))
    await hideForeignRun(caller.app, caller.principal, run_id);
  if (!(await isAllowed(op, caller, run_id))) throw forbiddenError(ROLE_MESSAGES[op.role]);
  assertWithinTenant(op, caller.principal);
}

function withApp(caller: ApiCaller, app: ServiceApp): ApiCaller {
  return app === caller.app ? caller : (Object.create(caller, { app: { value: app } }) as ApiCaller);
}

/** Falls back to the primary if the replica lacks the document or does not respond. */
async function onReplica<O>(caller: ApiCaller, look: (caller: ApiCaller) => Promise<O>): Promise<O> {
  const app = await replicaApp(caller.app);
  if (app === undefined) return look(caller);
  try {
    return await look(withApp(caller, app));
  } catch (error) {
    const isPrimarys = error instanceof SvcError && ["not_found", "unavailable"].includes(error.code);
    if (!isPrimarys) throw error;
    return look(caller);
  }
}

/** Fails closed: tenant-bound principals can call only operations that declare their confinement. */
export function isWithinTenant({ within_tenant, run_of }: RoleGate, principal: CallerPrincipal): boolean {
  return tenantBinding(principal) === null || (within_tenant ?? run_of !== undefined);
}

export function assertWithinTenant(op: RoleGate, principal: CallerPrincipal): void {
  if (!isWithinTenant(op, principal)) throw serviceWideOnly(principal);
}
