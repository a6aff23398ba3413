/** What a page or a form is given: who asks, what was sent, and the one door to the operations. */
import type { z } from "zod";
import type { App } from "../app/app.ts";
import { requireRole } from "../app/door/access.ts";
import type { Content, Operation } from "../app/door/operation.ts";
import {
  assertMayCall,
  assertWithinTenant,
  isWithinTenant,
  perform,
  type RoleGate,
} from "../app/door/perform.ts";
import { invalid } from "../kernel/errors.ts";
import { hasRole, type Principal, type Role } from "../model/roles.ts";
import type { LedgerCheckup } from "./checkup.ts";
import type { HourCounts } from "./hour-counts.ts";
import type { Html } from "./html.ts";
import type { Notice } from "./session.ts";

/** The fields of a form, as the browser sent them, with its line ends made plain. */
export class Form {
  private readonly fields: Readonly<Record<string, unknown>>;

  constructor(body: unknown) {
    this.fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  }

  all(name: string): string[] {
    const value = Object.hasOwn(this.fields, name) ? this.fields[name] : undefined;
    const list = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return list.map((item) => String(item).replaceAll("\r\n", "\n"));
  }

  text(name: string): string {
    return this.all(name)[0]?.trim() ?? "";
  }

  /** As typed, spaces included: for documents. */
  document(name: string): string {
    return this.all(name)[0] ?? "";
  }

  /** Undefined where the field was left empty. */
  optional(name: string): string | undefined {
    return this.text(name) || undefined;
  }

  checked(name: string): boolean {
    return this.text(name) === "yes";
  }
}

/** What the pages of one server share. */
export interface Shared {
  app: App;
  counts: HourCounts;
  checkup: LedgerCheckup;
}

export interface Ctx extends Shared {
  mode: "open" | "login";
  principal: Principal;
  csrf: string;
  params: Record<string, string>;
  query: Record<string, string>;
  form: Form;
  signal: AbortSignal;
  /** Performs an operation as this person; its roles, features and checks hold as on every surface. */
  call<I extends z.ZodType, O>(op: Operation<I, O>, input: z.input<I>): Promise<O>;
  /** Whether the operation's feature is on here. */
  has(op: Operation): boolean;
  /** Why it is off, in the operation's own words; null where it is on. */
  whyOff(op: Operation): string | null;
  /** Whether this person may use it here. */
  may(op: Operation): boolean;
  is(role: Role): boolean;
  /** Refuses whoever lacks the operation's role, before anything they sent is looked at. */
  demand(op: Operation): void;
  /** The same, and the box that says what is about to happen must be ticked. */
  demandConfirmed(op: Operation): void;
}

export type NavId =
  | "overview"
  | "approvals"
  | "runs"
  | "alerts"
  | "tools"
  | "drills"
  | "policy"
  | "impact"
  | "evidence"
  | "settings";

export interface Page {
  title: string;
  nav: NavId | null;
  body: Html;
  /** Where the page's live regions are fetched anew; null where nothing in the body is live. */
  live?: string | null;
}

export type Answer =
  | { page: Page; status?: number }
  | { to: string; notice?: Notice }
  | { content: Content; document?: boolean };

export interface ConsoleRoute {
  method: "GET" | "POST";
  /** Below /console, with `:name` for parameters. */
  path: string;
  /** Of a form: whose role is asked for before anything that was sent is read. */
  needs?: FormNeeds;
  run(ctx: Ctx): Promise<Answer>;
}

/** The operation behind a form; a form with several buttons says which one was pressed. */
export type FormNeeds = RoleGate | ((form: Form) => RoleGate);

export const get = (path: string, run: ConsoleRoute["run"]): ConsoleRoute => ({ method: "GET", path, run });
export const post = (path: string, needs: FormNeeds, run: ConsoleRoute["run"]): ConsoleRoute => ({
  method: "POST",
  path,
  needs,
  run,
});

/** Refuses a sender without the role; a run that is not theirs to see is not there. */
export async function admitForm({ needs }: ConsoleRoute, ctx: Ctx): Promise<void> {
  if (needs === undefined) return;
  await assertMayCall(typeof needs === "function" ? needs(ctx.form) : needs, ctx, ctx.params["id"]);
}

type CtxFacts = Shared & Pick<Ctx, "mode" | "principal" | "csrf" | "params" | "query" | "form" | "signal">;

export function createCtx(facts: CtxFacts): Ctx {
  const { app, principal, signal } = facts;
  const whyOff = (op: Operation) => op.feature?.(app) ?? null;
  const demand = (op: Operation) => {
    requireRole(principal, op.role);
    assertWithinTenant(op, principal);
  };
  return {
    ...facts,
    call: (op, input) => perform(op, { app, principal, signal }, input),
    whyOff,
    has: (op) => whyOff(op) === null,
    may: (op) => whyOff(op) === null && hasRole(principal, op.role) && isWithinTenant(op, principal),
    is: (role) => hasRole(principal, role),
    demand,
    demandConfirmed(op) {
      demand(op);
      if (!facts.form.checked("confirm")) throw invalid("tick the box that confirms what is about to happen");
    },
  };
}

/** One value a name, and none for a field that was left empty. */
export function plainQuery(query: unknown): Record<string, string> {
  const entries = Object.entries(query as Record<string, unknown>);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== ""),
  );
}
