/**
 * Beginning an undo. One unit checks everything (the lease, the turn, the consent), marks the step
 * `compensating` and records it; only when that is durable may anything run.
 */
import type { Core } from "../engine/core.ts";
import { runToolKey, stepKey } from "../engine/keys.ts";
import { loadSealedRun, loadStep } from "../engine/load-run.ts";
import { conflict } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { ApprovalDoc } from "../model/approval.ts";
import { type RunDoc, STANDING, type StepDoc } from "../model/run.ts";
import type { Key, Tx, Unit } from "../port/store.ts";
import { classify, closedText, needsUndo, type Standing, type UndoCall } from "./classify.ts";
import { type Beside, besideOf, type Conflict, stateNow } from "./conflict.ts";
import { type StepAtHand, settleConsent } from "./consent.ts";
import { coveredText, undoCovered } from "./covered.ts";
import { type Lease, leaseNeed, renewLease } from "./lease.ts";
import { assertOwnMayGoOn, isOwn, ownDenial, ownDetail, ownOverwrite } from "./own.ts";
import type { Overwrite, ReadRequest } from "./ports.ts";
import { markBegun, recordUndone } from "./record-undone.ts";

interface BeginInput {
  run_id: string;
  step: number;
  actor: string;
  /** Who rolls back on no other authority than having opened the run. */
  principal?: string | undefined;
  approve: boolean;
  fresh_approval_id: string;
  /** What the caller knows of the step; it only saves round trips. */
  hints?: Pick<StepDoc, "tool" | "manifest_hash"> | undefined;
  /** How many steps of the run the caller has looked at; those that came since are looked at here. */
  known_steps: number;
  /** Dependents that still stand, as the caller saw them. */
  blocked_by: readonly number[];
  /** Steps on the same thing that may have taken effect after this one; those that stand no more do not count. */
  beside: readonly number[];
  /** What the manifest's `before` shows now, as the caller read it just before. */
  current?: Json | undefined;
  overwrite?: Overwrite | undefined;
  /** Newer steps on the same resource that are undone with this one, on a person's word. */
  covers?: readonly number[] | undefined;
}

/** `stale`: steps that may depend on this one came meanwhile, and the caller must look again. */
export type BeginResult =
  | { state: "begun"; undo: UndoCall; salt: string; records: LedgerRecord[] }
  | { state: "blocked"; blocked_by: readonly number[]; records: LedgerRecord[] }
  | { state: "stale"; records: LedgerRecord[] }
  | { state: "denied"; error: string; records: LedgerRecord[] }
  | { state: "unread"; read: ReadRequest; records: LedgerRecord[] }
  | { state: "conflict"; conflict: Conflict; records: LedgerRecord[] }
  | { state: "as_before"; covers: readonly number[]; records: LedgerRecord[] }
  | { state: "awaiting"; request: ApprovalDoc; opened: ApprovalDoc | null; records: LedgerRecord[] };

/** For the holder of the run's lease, which lasts anew from here. `also` joins in where the undo begins. */
export function beginUnit(
  core: Core,
  lease: Lease,
  input: BeginInput,
  also?: (tx: Tx) => void,
): Unit<BeginResult> {
  return {
    needs: beginNeeds(input),
    run(tx) {
      renewLease(tx, lease, core.env.now());
      const result = beginStep(core, tx, input);
      if (result.state === "begun") also?.(tx);
      return result;
    },
  };
}

export function beginNeeds({ run_id, step, hints, beside }: BeginInput): Key[] {
  const key = stepKey(run_id, step);
  const needs: Key[] = [["runs", run_id], ["steps", key], ["payloads", key], leaseNeed(run_id)];
  for (const other of beside) needs.push(["steps", stepKey(run_id, other)]);
  if (hints !== undefined) needs.push(["run_tools", runToolKey(run_id, hints.tool)]);
  if (hints?.manifest_hash) needs.push(["manifests", hints.manifest_hash]);
  return needs;
}

/** The caller has made sure of the lease, in the same unit. */
export function beginStep(core: Core, tx: Tx, input: BeginInput): BeginResult {
  const run = loadSealedRun(tx, input.run_id);
  const step = loadStep(tx, input.run_id, input.step);
  const at = { core, tx, run, step };
  const key = stepKey(run.run_id, step.step);
  const manifest = step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash);
  const undo = undoOrRefuse(step, classify(step, manifest, tx.get("payloads", key), core.env.now()));
  if (input.blocked_by.length > 0)
    return { state: "blocked", blocked_by: [...input.blocked_by], records: [] };
  if (lateDependents(tx, run, input.known_steps)) return { state: "stale", records: [] };
  const own = isOwn(run, input.principal);
  if (own && input.overwrite !== undefined) throw ownOverwrite();
  if (own) assertOwnMayGoOn(core, tx, run, undo.tool);
  const denied = own ? ownDenial(core, tx, run, undo) : null;
  if (denied !== null) return { state: "denied", error: denied, records: [] };

  const seen = stateNow(run, undo, input, standingBeside(tx, step, input));
  if (seen.is === "unread" || seen.is === "conflict") return { ...seen.result, records: [] };
  // That there is nothing to undo is the run's own principal's word, and spares it no question.
  if (seen.is === "as_before" && !own) return nothingToDo(at, input);

  const consent = settleConsent(at, undo, { ...input, ...seen });
  if (consent.waits_for !== null) {
    tx.put("steps", key, step);
    tx.put("runs", run.run_id, run);
    return {
      state: "awaiting",
      request: consent.waits_for,
      opened: consent.opened,
      records: consent.records,
    };
  }
  if (seen.is === "as_before") {
    const done = nothingToDo(at, input, own);
    return { ...done, records: [...consent.records, ...done.records] };
  }
  const again = step.status === "compensating";
  const over =
    seen.over === undefined ? "" : `, overwriting what was written since: ${core.redact(seen.over)}`;
  const interrupted = again ? ", after an interruption" : "";
  const how = `by ${undo.tool}${interrupted}${coveredText(input.covers)}${over}`;
  step.undo_covers = input.covers;
  const record = markBegun(at, input.actor, ownDetail(own, how));
  tx.put("steps", key, step);
  tx.put("runs", run.run_id, run);
  return { state: "begun", undo, salt: run.salt, records: [...consent.records, record] };
}

function standingBeside(tx: Tx, step: StepDoc, { run_id, beside }: BeginInput): Beside[] {
  const others = beside.map((other) => loadStep(tx, run_id, other));
  return others.filter(({ status }) => STANDING.has(status)).map((other) => besideOf(step, other));
}

/** What is there now is what was there before the call: recorded as undone, and nothing is called. */
function nothingToDo(at: StepAtHand, input: BeginInput, own = false): BeginResult {
  const covers = input.covers ?? at.step.undo_covers ?? [];
  const detail = ownDetail(own, "nothing to do: all is already as before the call");
  const records = recordUndone(at, input.actor, detail);
  return { state: "as_before", covers, records: [...records, ...undoCovered(at, covers, input.actor)] };
}

function undoOrRefuse(step: StepDoc, standing: Standing | null): UndoCall {
  const n = step.step;
  if (standing === null) {
    const why =
      step.status === "compensated"
        ? "is already compensated"
        : `is ${step.status}: there is nothing to undo`;
    throw conflict("already_compensated", `step ${n} ${why}`, { step_status: step.status });
  }
  if (standing.kind === "compensate") return standing.undo;
  const closed = standing.kind === "unrecoverable" && standing.closed === true;
  const why: Record<Exclude<Standing["kind"], "compensate">, string> = {
    skip: `${step.tool} needs no undo`,
    unrecoverable: closed
      ? closedText(step.closes_ms!)
      : `${step.tool} is irreversible, or the arguments of its compensation are not available`,
    unresolved: `its outcome is unknown (${step.status}); resolve it first`,
    unmanifested: `${step.tool} had no manifest`,
  };
  throw conflict(
    "not_compensable",
    `step ${n} is not compensable: ${why[standing.kind]}`,
    closed ? { closed } : undefined,
  );
}

/** An agent may go on while its run is rolled back; what it added since may lean on what is about to go. */
function lateDependents(tx: Tx, run: RunDoc, known_steps: number): boolean {
  for (let n = known_steps; n < run.next_step; n++) {
    const late = tx.get("steps", stepKey(run.run_id, n));
    if (late === undefined || !needsUndo(late)) continue;
    if (late.depends_on.length > 0 || late.requires.length > 0) return true;
  }
  return false;
}
