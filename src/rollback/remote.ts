/**
 * A compensation by a worker somewhere else: it begins one, carries it out itself, and says how it went.
 * The run's lease is its licence; one that never comes back frees the step when the lease lapses.
 */
import type { Asking, Core } from "../engine/core.ts";
import { stepKey } from "../engine/keys.ts";
import { loadStep } from "../engine/load-run.ts";
import { conflict, notFound } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import { type BeginResult, beginNeeds, beginStep } from "./begin.ts";
import { classify, type UndoCall } from "./classify.ts";
import { type Completed, cleanError, completeStep, type UndoEnd } from "./complete.ts";
import { dropLease, leaseNeed, leaseOfHolder, takeLease, WORKER_LEASE_MS } from "./lease.ts";
import { markUnfinished, settleStep } from "./left.ts";
import { loadBeside, loadGroup, loadRunDoc } from "./load.ts";
import type { CompensationCall, Overwrite, ReadRequest } from "./ports.ts";
import { cannotVerify, compareReadBack, type ReadBack } from "./readback.ts";

const MAX_LOOKS = 20;
/** Of the steps that lean on one, as many as a header holds with ease; the message names them all. */
const MOST_NAMED = 500;

export interface CompensationTask extends CompensationCall {
  /** Newer steps that are undone with it, where what was there before the run is restored. */
  covers?: readonly number[];
  /** The read-back to make after the undo, or null where none is declared or its arguments are lost. */
  verification: (ReadRequest & { expect: Json }) | null;
}

export interface WorkerOutcome {
  status: "succeeded" | "failed";
  error?: string | undefined;
  attempts?: number | undefined;
  /** What the read-back returned; absent where none was made. */
  observed?: Json | undefined;
}

/** What the worker saw, where the step has a `before`, and a person's word to undo it all the same. */
interface WorkerView {
  current?: Json | undefined;
  overwrite?: Overwrite | undefined;
}

/** All was already as before the call: recorded as undone, and there is nothing to do. */
export interface Undone {
  run_id: string;
  step: number;
  status: "compensated";
  covers?: readonly number[];
}

/** Whoever carries out the undo somewhere else; the run's own principal reports on itself. */
export type Worker = Asking & { self_reports?: boolean };

const workerHolder = (asking: Worker, step: number): string => `worker/${step}/${asking.id}`;

/** Throws a conflict when it is not the step's turn, it is undone, it cannot be, or it awaits approval. */
export async function beginCompensation(
  core: Core,
  asking: Worker,
  run_id: string,
  n: number,
  seen: WorkerView = {},
): Promise<CompensationTask | Undone> {
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const { begun, first, covers } = await tryBegin(core, asking, run_id, n, seen);
    if (begun.records.length > 0) core.listeners.recorded(begun.records);
    if (begun.state === "begun")
      return { ...taskOf(run_id, first.step, first.tool, begun.undo), ...coversField(covers) };
    if (begun.state === "as_before")
      return { run_id, step: first.step, status: "compensated", ...coversField(begun.covers) };
    if (begun.state === "denied")
      throw conflict("compensation_denied", `step ${n}: ${begun.error}`, { denied: true });
    if (begun.state === "unread")
      throw conflict(
        "read_first",
        `step ${n}: read ${begun.read.tool} first, with the arguments that the plan names, and send what it shows as current, so that no foreign write is lost`,
        { read_first: begun.read.tool },
      );
    if (begun.state === "conflict") {
      const { error, current_hash } = begun.conflict;
      throw conflict("written_since", error, { conflict: true, current_hash });
    }
    if (begun.state === "blocked") {
      throw conflict(
        "not_its_turn",
        `it is not the turn of step ${n}: step ${begun.blocked_by.join(", ")} depends on it and still stands`,
        { blocked_by: begun.blocked_by.slice(0, MOST_NAMED) },
      );
    }
    if (begun.state === "awaiting") {
      if (begun.opened !== null) core.listeners.approvalRequested(begun.opened);
      throw conflict(
        "approval_required",
        `approval required: request ${begun.request.id} is pending an operator decision; retry after it is approved`,
        { approval_id: begun.request.id },
      );
    }
  }
  throw conflict("run_growing", `run ${run_id} keeps taking new steps; halt its agent and try again`);
}

async function tryBegin(
  core: Core,
  asking: Worker,
  run_id: string,
  n: number,
  { current, overwrite }: WorkerView,
): Promise<{ begun: BeginResult; first: StepDoc; covers: readonly number[] }> {
  const run = await loadRunDoc(core.store, run_id);
  const step = await core.store.get("steps", stepKey(run_id, n));
  if (step === undefined) throw notFound(`run ${run_id} has no step ${n}`, "unknown_step");
  const group = await loadGroup(core.store, run, step, overwrite);
  const [first, ...newer] = group.steps;
  const covers = newer.map((covered) => covered.step);
  const input = {
    run_id,
    step: first.step,
    actor: asking.name,
    principal: asking.self_reports ? asking.id : undefined,
    approve: false,
    fresh_approval_id: `apr_${core.env.uuid()}`,
    known_steps: run.next_step,
    blocked_by: group.blocked_by,
    beside: (await loadBeside(core.store, run, first)).filter((other) => !covers.includes(other)),
    hints: first,
    current,
    overwrite,
    covers: covers.length === 0 ? undefined : covers,
  };
  const begun = await core.store.transact({
    needs: beginNeeds(input),
    run(tx: Tx): BeginResult {
      const lease = takeLease(core, tx, run_id, workerHolder(asking, first.step), WORKER_LEASE_MS);
      const result = beginStep(core, tx, input);
      if (result.state !== "begun") dropLease(tx, lease);
      if (result.state === "begun") markUnfinished(tx, run_id);
      else if (result.state === "conflict") settleStep(tx, run_id, n, "conflict");
      else if (result.state === "as_before")
        for (const step of [first.step, ...covers]) settleStep(tx, run_id, step, null);
      return result;
    },
  });
  return { begun, first, covers };
}

const coversField = (covers: readonly number[]) => (covers.length === 0 ? {} : { covers });

function taskOf(run_id: string, step: number, original_tool: string, undo: UndoCall): CompensationTask {
  const { read_back } = undo;
  const readable = read_back !== null && read_back.arguments !== undefined;
  return {
    run_id,
    step,
    tool: undo.tool,
    original_tool,
    args: undo.args,
    idempotency_key: undo.idempotency_key,
    verification: readable
      ? { tool: read_back.tool, arguments: read_back.arguments!, expect: read_back.expect }
      : null,
  };
}

/** Takes the word of the worker that began the step; another's is a conflict. */
export async function completeCompensation(
  core: Core,
  asking: Worker,
  run_id: string,
  n: number,
  outcome: WorkerOutcome,
): Promise<{ step: number; status: Completed["status"]; unverified?: true }> {
  const key = stepKey(run_id, n);
  const done = await core.store.transact({
    needs: [["runs", run_id], ["steps", key], ["payloads", key], leaseNeed(run_id)],
    run(tx: Tx): Completed {
      const undo = begunUndo(tx, run_id, n);
      const lease = leaseOfHolder(tx, run_id, workerHolder(asking, n));
      if (lease === undefined) {
        throw conflict(
          "compensation_of_another",
          `the compensation of step ${n} was not begun by you, or was taken over by another worker`,
        );
      }
      const completed = completeStep(core, tx, {
        run_id,
        step: n,
        actor: asking.name,
        principal: asking.self_reports ? asking.id : undefined,
        end: endOf(core, undo, outcome),
        own_reader: false,
      });
      for (const step of [n, ...completed.covers])
        settleStep(tx, run_id, step, completed.unverified ? "unverified" : null);
      dropLease(tx, lease);
      return completed;
    },
  });
  core.listeners.recorded(done.records);
  const { step, status, self_reported, unverified } = done;
  return { step, status, ...(self_reported && unverified ? { unverified } : {}) };
}

/** What was begun before it closed may be told of afterwards. */
const BEGUN_IN_TIME = 0;

function begunUndo(tx: Tx, run_id: string, n: number): UndoCall {
  const step = loadStep(tx, run_id, n);
  if (step.status !== "compensating")
    throw conflict(
      "compensation_not_begun",
      `step ${n} is ${step.status}: no compensation of it is under way`,
    );
  const manifest = step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash);
  const standing = classify(step, manifest, tx.get("payloads", stepKey(run_id, n)), BEGUN_IN_TIME);
  if (standing?.kind !== "compensate")
    throw conflict("compensation_lost", `the compensation of step ${n} can no longer be told`);
  return standing.undo;
}

function endOf(core: Core, undo: UndoCall, outcome: WorkerOutcome): UndoEnd {
  const attempts = outcome.attempts ?? 1;
  if (outcome.status === "failed")
    return { ok: false, attempts, error: cleanError(core, undo, outcome.error ?? "") };
  return { ok: true, attempts, read_back: readBackOf(undo, outcome.observed) };
}

function readBackOf({ read_back }: UndoCall, observed: Json | undefined): ReadBack | null {
  if (read_back === null) return null;
  if (read_back.arguments === undefined) return cannotVerify();
  return observed === undefined ? { as: "unverified" } : compareReadBack(read_back, observed);
}
