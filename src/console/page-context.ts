/** The context of a console page or form: the caller, the submitted fields and access to the operations. */
import type { z } from "zod";
import { type CallerPrincipal, hasRole, type PrincipalRole } from "../govern/roles.ts";
import { invalidError } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import { requireRole } from "../operations/pipeline/access.ts";
import {
  assertMayCall,
  assertWithinTenant,
  dispatchOperation,
  isWithinTenant,
  type RoleGate,
} from "../operations/pipeline/dispatch.ts";
import type { DocumentContent, ServiceOperation } from "../operations/pipeline/operation.ts";
import type { HourCounts } from "./hour-counts.ts";
import { EmbeddedHtml, type HtmlFragment } from "./html.ts";
import type { PageNotice } from "./session/session.ts";
import type { LedgerVerification } from "./verification.ts";

/** Form fields as the browser sent them, with line endings normalised. */
export class SubmittedForm {
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

  /** The text exactly as typed, spaces included. For documents. */
  document(name: string): string {
    return this.all(name)[0] ?? "";
  }

  /** Returns undefined if the field was left empty. */
  optional(name: string): string | undefined {
    return this.text(name) || undefined;
  }

  checked(name: string): boolean {
    return this.text(name) === "yes";
  }
}

/** State that all pages of one server share. */
export interface SharedPageState {
  app: ServiceApp;
  counts: HourCounts;
  checkup: LedgerVerification;
}

export interface PageContext extends SharedPageState {
  /** Parts of the page that a thread drew. */
  embedded: EmbeddedHtml;
  mode: "open" | "login";
  principal: CallerPrincipal;
  csrf: string;
  params: Record<string, string>;
  query: Record<string, string>;
  form: SubmittedForm;
  signal: AbortSignal;
  /** Performs an operation as this user, with the same role, feature and input checks as the API. */
  call<I extends z.ZodType, O>(op: ServiceOperation<I, O>, input: z.input<I>): Promise<O>;
  /** Whether the operation's feature is enabled on this server. */
  has(op: ServiceOperation): boolean;
  /** Reason why the operation's feature is disabled, or null if it is enabled. */
  whyOff(op: ServiceOperation): string | null;
  /** Whether the feature is enabled and this user has the role for the operation. */
  may(op: ServiceOperation): boolean;
  is(role: PrincipalRole): boolean;
  /** Throws if the user lacks the operation's role. Called before any submitted field is read. */
  demand(op: ServiceOperation): void;
  /** Like `demand`, and throws if the confirmation box is not checked. */
  demandConfirmed(op: ServiceOperation): void;
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

export interface ConsolePage {
  title: string;
  nav: NavId | null;
  body: HtmlFragment;
  /** URL that the live script fetches to refresh this page, or null if nothing in the body is live. */
  live?: string | null;
}

export type PageAnswer =
  | { page: ConsolePage; status?: number }
  | { to: string; notice?: PageNotice }
  | { content: DocumentContent; document?: boolean };

export interface ConsoleRoute {
  method: "GET" | "POST";
  /** Path below /console, with `:name` parameters. */
  path: string;
  /** For forms: the role check that runs before any submitted field is read. */
  needs?: FormNeeds;
  run(ctx: PageContext): Promise<PageAnswer>;
}

/** Operation behind a form. A form with several buttons passes a function that reads which one was pressed. */
export type FormNeeds = RoleGate | ((form: SubmittedForm) => RoleGate);

export const getRoute = (path: string, run: ConsoleRoute["run"]): ConsoleRoute => ({
  method: "GET",
  path,
  run,
});
export const postRoute = (path: string, needs: FormNeeds, run: ConsoleRoute["run"]): ConsoleRoute => ({
  method: "POST",
  path,
  needs,
  run,
});

/** Throws if the sender lacks the role. Reports `not_found` for a run that the sender is not allowed to see. */
export async function admitForm({ needs }: ConsoleRoute, ctx: PageContext): Promise<void> {
  if (needs === undefined) return;
  await assertMayCall(typeof needs === "function" ? needs(ctx.form) : needs, ctx, ctx.params["id"]);
}

type CtxFacts = SharedPageState &
  Pick<PageContext, "mode" | "principal" | "csrf" | "params" | "query" | "form" | "signal">;

export function createPageContext(facts: CtxFacts): PageContext {
  const { app, principal, signal } = facts;
  const whyOff = (op: ServiceOperation) => op.feature?.(app) ?? null;
  const demand = (op: ServiceOperation) => {
    requireRole(principal, op.role);
    assertWithinTenant(op, principal);
  };
  return {
    ...facts,
    embedded: new EmbeddedHtml(),
    call: (op, input) => dispatchOperation(op, { app, principal, signal }, input),
    whyOff,
    has: (op) => whyOff(op) === null,
    may: (op) => whyOff(op) === null && hasRole(principal, op.role) && isWithinTenant(op, principal),
    is: (role) => hasRole(principal, role),
    demand,
    demandConfirmed(op) {
      demand(op);
      if (!facts.form.checked("confirm")) throw invalidError("check the box that confirms this action");
    },
  };
}

/** Returns one value per parameter and drops empty ones. */
export function singleValueQuery(query: unknown): Record<string, string> {
  const entries = Object.entries(query as Record<string, unknown>);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== ""),
  );
}
