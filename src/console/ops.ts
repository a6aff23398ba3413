/**
 * Finding operations by method and path, as the interface names them. A page asks at the moment it is drawn,
 * and leaves out what this server does not have.
 */
import type { App } from "../app/app.ts";
import type { Method, Operation } from "../app/operation.ts";
import { OPERATIONS } from "../app/operations/index.ts";
import { notFound } from "../kernel/errors.ts";
import { hasRole, type Principal } from "../model/roles.ts";

export type OpName = `${Method} /v1/${string}`;

let table: ReadonlyMap<string, Operation> | undefined;

function find(name: OpName): Operation | undefined {
  table ??= new Map(OPERATIONS.map((op) => [`${op.method} ${op.path}`, op]));
  return table.get(name);
}

export function operationNamed(name: OpName): Operation {
  const op = find(name);
  if (op === undefined) throw notFound("this server does not offer that");
  return op;
}

/** Whether this server has the operation, and its feature is enabled. */
export function isEnabled(app: App, name: OpName): boolean {
  const op = find(name);
  return op !== undefined && (op.feature?.(app) ?? null) === null;
}

/** Whether it would be of use to show this person a button for it. */
export function isOffered(app: App, principal: Principal, name: OpName): boolean {
  return isEnabled(app, name) && hasRole(principal, operationNamed(name).role);
}

/** Why the feature is off, in the operation's own words; null where it is on or unknown. */
export function whyDisabled(app: App, name: OpName): string | null {
  return find(name)?.feature?.(app) ?? null;
}
