/** Approvals: listing, waiting for, deciding, breaking glass, and approving ahead. */
import { z } from "zod";
import { breakGlassUnit, type DecideResult, decideUnit } from "../../engine/approvals/decide-request.ts";
import { preApproveUnit } from "../../engine/approvals/pre-approve.ts";
import { tryDuration } from "../../kernel/duration.ts";
import { notFound } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import {
  APPROVAL_STATUSES,
  type ApprovalDoc,
  approvalView,
  type Delegation,
  OPEN_APPROVAL,
} from "../../model/approval.ts";
import { hasRole } from "../../model/roles.ts";
import { requireRole } from "../access.ts";
import { type App, announce } from "../app.ts";
import { cutPage, decodeCursor } from "../cursor.ts";
import { type Call, operation } from "../operation.ts";
import {
  anyJson,
  approvalParams,
  approvalViewShape,
  emptyQuery,
  noParams,
  note,
  pageLimit,
  runParams,
  tool,
  wholeNumber,
} from "../schemas.ts";

const noteBody = z.strictObject({ note: note.optional() });
const seconds = wholeNumber(
  0,
  LIMITS.approval_wait_s,
  `must be whole seconds, at most ${LIMITS.approval_wait_s}`,
);

export const listApprovals = operation({
  id: "list_approvals",
  summary: "List approval requests, newest first",
  method: "GET",
  path: "/v1/approvals",
  role: "auditor",
  params: noParams,
  query: z.strictObject({
    status: z.enum(APPROVAL_STATUSES).optional(),
    run_id: z.string().optional(),
    limit: pageLimit.optional(),
    cursor: z.string().max(500).optional(),
  }),
  output: z.strictObject({
    approvals: z.array(approvalViewShape),
    next_cursor: z.string().optional(),
  }),
  status: 200,
  async run({ app }, { query }) {
    const limit = query.limit ?? LIMITS.page_default;
    const rows = await app.core.store.list("approvals", {
      owner: query.run_id,
      tag: query.status,
      order: "desc",
      limit: limit + 1,
      after: query.cursor === undefined ? undefined : decodeCursor(query.cursor),
    });
    const { page, next } = cutPage(rows, limit);
    const approvals = page.map((row) => approvalView(row.doc));
    return next === null ? { approvals } : { approvals, next_cursor: next };
  },
});

export const getApproval = operation({
  id: "get_approval",
  summary: "Read a request; with `wait`, answer as soon as it is decided",
  method: "GET",
  path: "/v1/approvals/{id}",
  role: "auditor",
  any_role: true,
  params: approvalParams,
  query: z.strictObject({ wait: seconds.optional() }),
  output: approvalViewShape,
  status: 200,
  errors: { 404: "unknown request, or one of another agent's run" },
  async run(call, { params, query }) {
    const wait_s = query.wait ?? 0;
    const approval = await awaitDecision(call.app, params.id, wait_s, call.signal, async (found) => {
      const principal = wait_s === 0 ? call.principal : ((await call.again?.()) ?? call.principal);
      return hasRole(principal, "auditor") || found.internal.principal === principal.id;
    });
    return approvalView(approval);
  },
});

/** Waits until the request is decided or the time is over; sees decisions of every process of the store. */
export async function awaitDecision(
  app: App,
  id: string,
  wait_s: number,
  signal: AbortSignal,
  visible: (approval: ApprovalDoc) => boolean | Promise<boolean>,
) {
  const { store, env } = app.core;
  const until = env.elapsed() + wait_s * 1_000;
  for (;;) {
    // Watch first, then look: a decision between the two must not be missed.
    const stop = new AbortController();
    const change = store.changed(AbortSignal.any([signal, stop.signal]));
    const approval = await store.get("approvals", id);
    const left = until - env.elapsed();
    const done = approval === undefined || !OPEN_APPROVAL.has(approval.status) || left <= 0 || signal.aborted;
    if (done) {
      stop.abort();
      if (approval === undefined || !(await visible(approval)))
        throw notFound(`unknown approval request ${id}`);
      return approval;
    }
    await Promise.race([change, env.sleep(Math.min(left, 60_000), stop.signal).catch(() => {})]);
    stop.abort();
  }
}

async function delegationsTo(app: App, name: string): Promise<Delegation[]> {
  const rows = await app.core.store.list("delegations", {
    owner: name,
    tag: "active",
    limit: LIMITS.page_max,
  });
  return rows.map((row) => row.doc);
}

export async function decideRequest(
  { app, principal }: Call,
  id: string,
  decision: "approve" | "deny",
  note: string | undefined,
) {
  const delegations = await delegationsTo(app, principal.name);
  if (delegations.length === 0) requireRole(principal, "approver");
  const result = await app.core.store.transact(
    decideUnit(app.core, principal, id, { decision, note: note ?? null }, delegations, app.today),
  );
  return told(app, result);
}

function told(app: App, result: DecideResult) {
  announce(app.core.listeners, result.records);
  if (result.refused !== null) throw result.refused;
  return approvalView(result.approval);
}

const decision = (verb: "approve" | "deny") =>
  operation({
    id: verb,
    summary: verb === "approve" ? "Approve a request" : "Deny a request",
    method: "POST",
    path: `/v1/approvals/{id}/${verb}`,
    role: "approver",
    role_or_delegate: true,
    params: approvalParams,
    query: emptyQuery,
    body: noteBody,
    output: approvalViewShape,
    status: 200,
    errors: { 404: "unknown request", 409: "already decided" },
    run: (call, { params, body }) => decideRequest(call, params.id, verb, body.note),
  });

export const approve = decision("approve");
export const deny = decision("deny");

export const breakGlass = operation({
  id: "break_glass",
  summary: "Approve alone, past quorum and groups; raises an alert",
  method: "POST",
  path: "/v1/approvals/{id}/break-glass",
  role: "admin",
  params: approvalParams,
  query: emptyQuery,
  body: z.strictObject({
    reason: z
      .string()
      .max(LIMITS.note_chars)
      .refine(
        (value) => value.trim().length >= LIMITS.break_glass_reason_chars,
        `at least ${LIMITS.break_glass_reason_chars} characters`,
      ),
  }),
  output: approvalViewShape,
  status: 200,
  errors: { 404: "unknown request", 409: "already decided" },
  async run({ app, principal }, { params, body }) {
    return told(
      app,
      await app.core.store.transact(breakGlassUnit(app.core, principal, params.id, body.reason)),
    );
  },
});

export const preApprove = operation({
  id: "pre_approve",
  summary: "Approve a call before it is asked for",
  method: "POST",
  path: "/v1/runs/{id}/approvals",
  role: "approver",
  params: runParams,
  query: emptyQuery,
  body: z.strictObject({
    tool,
    args: anyJson,
    note: note.optional(),
    ttl: z
      .string()
      .refine((value) => (tryDuration(value) ?? 0) > 0, "must be a duration such as 4h")
      .optional(),
  }),
  output: approvalViewShape,
  status: 201,
  errors: { 404: "unknown run" },
  async run({ app, principal }, { params, body }) {
    const input = {
      tool: body.tool,
      args: body.args as Json,
      note: body.note ?? null,
      ttl_ms: body.ttl === undefined ? null : tryDuration(body.ttl)!,
    };
    return told(app, await app.core.store.transact(preApproveUnit(app.core, principal, params.id, input)));
  },
});
