/**
 * The one way into an operation: the run is hidden from agents it does not belong to, then the role is
 * checked, then whether the feature is enabled, then the input. Every surface comes through here.
 */
import type { z } from "zod";
import { forbidden, invalid, SvcError } from "../../kernel/errors.ts";
import { boundTo, hasRole, type Principal, ROLE_MESSAGES } from "../../model/roles.ts";
import { RUN_ID_FORM } from "../../model/run.ts";
import type { App } from "../app.ts";
import { appFor, delegationsTo, hideForeignRun, replicaApp, undoesOwnRun, wholeService } from "./access.ts";
import { describeIssues } from "./issues.ts";
import type { Caller, Operation } from "./operation.ts";

/** What is wrong with an input, in the words of the surface it came through; undefined where nothing is. */
export type Complaint = (error: z.ZodError | undefined) => string | undefined;

const plainly: Complaint = (error) => (error === undefined ? undefined : describeIssues(error, "input"));

export async function perform<I extends z.ZodType, O>(
  op: Operation<I, O>,
  caller: Caller,
  input: z.input<I>,
  complaint: Complaint = plainly,
): Promise<O> {
  const run_id = op.run_of?.(input as Partial<z.output<I>>);
  // Another field may be wrong; whether there is such a run is said first.
  if (typeof run_id === "string" && RUN_ID_FORM.test(run_id)) {
    const looking = hideForeignRun(caller.app, caller.principal, run_id);
    if (looking !== undefined) await looking;
  }
  const allowed = isAllowed(op, caller, run_id);
  // A promise is awaited and a boolean is not: this is on the way of every intent.
  if (!(typeof allowed === "boolean" ? allowed : await allowed))
    throw forbidden(ROLE_MESSAGES[op.role], "role_required");
  assertWithinTenant(op, caller.principal);
  const app = appFor(caller.app, caller.principal);
  const confined = withApp(caller, app);
  const why = op.feature?.(app, confined) ?? null;
  if (why !== null) throw new SvcError("not_enabled", why);
  const parsed = op.input.safeParse(input);
  const wrong = complaint(parsed.error);
  if (wrong !== undefined) throw invalid(wrong);
  const given = parsed.data as z.output<I>;
  // Waited for here: a promise that an async function answers with goes three turns instead of one.
  if (op.reads_replica !== true) return await op.run(confined, given);
  return onReplica(confined, (looking) => op.run(looking, given));
}

/** Who may call something, whatever the input is. */
export type RoleGate = Pick<
  Operation,
  "role" | "any_role" | "role_or_delegate" | "role_or_owner" | "within_tenant" | "run_of"
>;

/** At once for a caller with the role; without it a delegate may act, or the owner of the run. */
function isAllowed(
  op: RoleGate,
  { app, principal }: Pick<Caller, "app" | "principal">,
  run_id: unknown,
): boolean | Promise<boolean> {
  if (op.any_role === true || hasRole(principal, op.role)) return true;
  if (op.role_or_delegate === true) return hasDelegations(app, principal);
  return op.role_or_owner === true && undoesOwnRun(app, principal, run_id);
}

/** Whether anything was lent to the principal; the operation decides whether that is enough. */
async function hasDelegations(app: App, principal: Principal): Promise<boolean> {
  return (await delegationsTo(appFor(app, principal), principal.name)).length > 0;
}

/** Refuses a caller without the role before anything that was sent is read. */
export async function assertMayCall(
  op: RoleGate,
  caller: Pick<Caller, "app" | "principal">,
  run_id?: string,
): Promise<void> {
  if (op.run_of !== undefined && run_id !== undefined && RUN_ID_FORM.test(run_id))
    await hideForeignRun(caller.app, caller.principal, run_id);
  if (!(await isAllowed(op, caller, run_id))) throw forbidden(ROLE_MESSAGES[op.role]);
  assertWithinTenant(op, caller.principal);
}

function withApp(caller: Caller, app: App): Caller {
  return app === caller.app ? caller : (Object.create(caller, { app: { value: app } }) as Caller);
}

/** What the replica does not have yet, or does not answer, is asked of the primary. */
async function onReplica<O>(caller: Caller, look: (caller: Caller) => Promise<O>): Promise<O> {
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

/** Fails closed: an operation that does not say how it is confined is not for those who are. */
export function isWithinTenant({ within_tenant, run_of }: RoleGate, principal: Principal): boolean {
  return boundTo(principal) === null || (within_tenant ?? run_of !== undefined);
}

export function assertWithinTenant(op: RoleGate, principal: Principal): void {
  if (!isWithinTenant(op, principal)) throw wholeService(principal);
}
