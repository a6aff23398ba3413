/**
 * Compares the calls that a client's transcript names with the steps of a run. Calls with an id as `ref` match the step of
 * that ref. Calls without an id match by order and time, and by tool: their ref names tool and input, or the transcript
 * names the tool as the manifests do.
 */

import { INPUT_REF } from "../../kernel/input-ref.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { EngineCore } from "../core.ts";
import { joinIncident } from "../incidents/join-incident.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { appendRunRecord } from "../records.ts";
import { isProbe } from "../roles.ts";
import { loadRun } from "./load-run.ts";
import type { RunDoc, StepDoc } from "./run.ts";

export interface ReportedCall {
  /** The client's id of the call. */
  ref: string | null;
  /** The client's name of the tool. */
  tool: string;
  at_ms: number;
  /** False if the client says that the call was refused. */
  ran: boolean;
}

export interface CallComparison {
  /** Accepted calls of the run. */
  asked: number;
  /** Calls that ran, according to the transcript. */
  ran: number;
  /** Calls that ran without a step. */
  ungoverned: { ref: string | null; tool: string; at_ms: number }[];
  /** Accepted calls that never ran. */
  unused: { run_id: string; step: number; ref: string | null; tool: string; at_ms: number }[];
}

type ComparedStep = Pick<StepDoc, "run_id" | "step" | "ref" | "tool" | "status" | "intended_ms">;

/** Clocks of client and service may differ by so much. */
const CLOCK_SKEW_MS = 60_000;

/**
 * A step that the ledger itself calls failed is not unused: the client reported that it had no effect. `isManifestTool`:
 * whether the manifests have a tool of this name. A client's own names cannot be compared with theirs.
 */
export function compareCalls(
  steps: readonly ComparedStep[],
  calls: readonly ReportedCall[],
  isManifestTool: (name: string) => boolean = () => false,
): CallComparison {
  const open = new Map<string | null, ComparedStep[]>();
  for (const step of [...steps].sort(byTime)) {
    const ref = step.ref ?? null;
    open.set(ref, [...(open.get(ref) ?? []), step]);
  }
  const ran = calls.filter((call) => call.ran).sort((a, b) => a.at_ms - b.at_ms);
  const ungoverned = ran.flatMap(({ ref, tool, at_ms }) => {
    const left = open.get(ref) ?? [];
    const fitting = left.filter(
      (step) =>
        (ref !== null || !isManifestTool(tool) || step.tool === tool) &&
        (isCallId(ref) || isAskedBefore(step, at_ms)),
    );
    // One that failed may be a call that its user declined.
    const found = fitting.find(({ status }) => status !== "failed") ?? fitting[0];
    if (found === undefined) return [{ ref, tool, at_ms }];
    left.splice(left.indexOf(found), 1);
    return [];
  });
  const unused = [...open.values()]
    .flat()
    .filter(({ status }) => status !== "failed")
    .sort(byTime)
    .map(({ run_id, step, ref = null, tool, intended_ms }) => ({
      run_id,
      step,
      ref,
      tool,
      at_ms: intended_ms,
    }));
  return { asked: steps.length, ran: ran.length, ungoverned, unused };
}

const isCallId = (ref: string | null): boolean => ref !== null && !ref.startsWith(INPUT_REF);

/** A call that ran earlier is another one. Transcripts without a time say 0. */
const isAskedBefore = ({ intended_ms }: ComparedStep, at_ms: number): boolean =>
  at_ms === 0 || intended_ms <= at_ms + CLOCK_SKEW_MS;

const byTime = (a: ComparedStep, b: ComparedStep): number => a.intended_ms - b.intended_ms || a.step - b.step;

/** Text of the record: counts alone, and who reported them. */
const detailOf = (source: string, by: string, { asked, ran, ungoverned, unused }: CallComparison): string =>
  `${source}: ${asked} asked, ${ran} ran, ${ungoverned.length} ungoverned, ${unused.length} unused; reported by ${by}`;

/** Whether a record's text names a difference. */
export const isDifference = (detail: string): boolean =>
  !/^[\w.-]+: \d+ asked, \d+ ran, 0 ungoverned, 0 unused; /.test(detail);

/** Records a comparison on the run. */
export function reconcileUnit(
  core: EngineCore,
  run_id: string,
  reported: { source: string; by: string; comparison: CallComparison },
): UnitOfWork<LedgerRecord> {
  return {
    needs: [["runs", run_id]],
    run(tx) {
      const run = loadRun(tx, run_id);
      const record = appendRunRecord(tx, run, {
        event: "reconciled",
        actor: reported.by,
        ts_ms: core.env.now(),
        detail: detailOf(reported.source, reported.by, reported.comparison),
      });
      tx.put("runs", run_id, run);
      joinOnUngoverned(core, tx, run, record, reported.comparison.ungoverned.length);
      return record;
    },
  };
}

/** Calls that ran without a decision give the run's agent an incident. A later report does not end it. */
function joinOnUngoverned(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  { ts_ms }: LedgerRecord,
  ungoverned: number,
): void {
  if (ungoverned === 0 || isProbe(run.principal)) return;
  const { run_id, tenant } = run;
  joinIncident(core, tx, run, {
    kind: "ungoverned",
    ref: `${run_id}/${run.next_run_seq - 1}`,
    at_ms: ts_ms,
    text: `run ${run_id}: ${formatCountOf(ungoverned, "call")} ran without a decision`,
    run_id,
    step: null,
    tenant,
  });
}
