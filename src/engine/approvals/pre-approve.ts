/** Approving a call before it is asked for: the request is born approved, for exactly those arguments. */
import { keyedHash } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../../model/approval.ts";
import { keptArgs } from "../../model/card/kept.ts";
import { needsMet } from "../../model/policy/approvals.ts";
import type { Principal } from "../../model/roles.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx, Unit } from "../../port/store.ts";
import { type Core, ENGINE } from "../core.ts";
import { coveredBy } from "../decide/approval-stage.ts";
import { slotKey } from "../keys.ts";
import { loadSealedRun } from "../load-run.ts";
import { appendApprovalRecord } from "../records.ts";
import { assertNotOwn } from "./authority.ts";
import { voterOf } from "./counting.ts";
import type { DecideResult } from "./decide-request.ts";
import { moveApproval, newApproval } from "./requests.ts";

interface PreApproveInput {
  tool: string;
  args: Json;
  note: string | null;
  ttl_ms: number | null;
}

export function preApproveUnit(
  core: Core,
  principal: Principal,
  run_id: string,
  input: PreApproveInput,
): Unit<DecideResult> {
  const id = `apr_${core.env.uuid()}`;
  return {
    needs: [["runs", run_id]],
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      assertNotOwn(run, principal, core.rules().policy.approvals.four_eyes);
      const now = core.env.now();
      const note = input.note === null ? null : core.redact(input.note);
      const args_hash = keyedHash(run.salt, input.args);
      const closed = closeCovered(tx, run, {
        id,
        tool: input.tool,
        args_hash,
        groups: principal.groups,
        now,
      });
      const request = newApproval(tx, run, { id, now, args_hash, ...requestOf(core, input, note) });
      const decided: ApprovalDoc = {
        ...request,
        votes: [{ by: principal.name, decision: "approve", note, at_ms: now, for: null }],
        decided_by: principal.name,
        decided_ms: now,
        note,
        internal: {
          ...request.internal,
          given_ahead: true,
          voters: [voterOf(principal, { for: null, groups: principal.groups }, core.today)],
        },
      };
      const approval = moveApproval(tx, run, decided, "approved");
      const record = appendApprovalRecord(tx, run, approval, {
        event: "approved",
        actor: principal.name,
        ts_ms: now,
        detail: `pre-approved: ${note ?? ""}`.trimEnd(),
      });
      tx.put("runs", run.run_id, run);
      return { approval, records: [...closed, record], refused: null };
    },
  };
}

/** What the request would have been, had the agent asked: for one voice, of whichever group. */
function requestOf(core: Core, { tool, args, ttl_ms }: PreApproveInput, note: string | null) {
  const { manifests, policy } = core.rules();
  const { approvals } = policy;
  return {
    tool,
    args,
    reason: note ?? "pre-approved",
    kind: "call" as const,
    rule: null,
    step: null,
    risk_score: 0,
    spec: {
      groups: [],
      quorum: 1,
      ttl_ms: ttl_ms ?? approvals.ttl_ms,
      escalate_after_ms: null,
      escalate_to: [],
      needs: [{ groups: [], quorum: 1 }],
    },
    shown: approvals.show === "names" ? null : { args: keptArgs(args, manifests.active(tool) ?? null) },
  };
}

/** A request for the same call that this one person could have decided need not be decided any more. */
function closeCovered(
  tx: Tx,
  run: RunDoc,
  {
    id,
    tool,
    args_hash,
    groups,
    now,
  }: { id: string; tool: string; args_hash: string; groups: readonly string[]; now: number },
): LedgerRecord[] {
  const slot = tx.get("approval_slots", slotKey(run.run_id, tool, args_hash));
  const asked = slot === undefined ? undefined : tx.get("approvals", slot.id);
  if (asked === undefined || !OPEN_APPROVAL.has(asked.status)) return [];
  if (!needsMet(asked.internal.needs, [{ groups }])) return [];
  const note = coveredBy(`request ${id}`);
  const moved = moveApproval(tx, run, { ...asked, note }, "expired");
  return [
    appendApprovalRecord(tx, run, moved, {
      event: "approval_expired",
      actor: ENGINE,
      ts_ms: now,
      detail: `request ${asked.id}: ${note}`,
    }),
  ];
}
