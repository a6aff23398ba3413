/**
 * A document as its JSON text. Those that every intent and outcome writes are put together by hand, for half of what
 * JSON.stringify takes: what does not change of a run is spelled once. Whatever is unusual about one is left to
 * JSON.stringify, and both say the same.
 */
import type { RunDoc, RunToolDoc, SealedScope, StepDoc } from "../model/run.ts";
import type { TableName, Tables } from "../port/tables.ts";

type AnyDoc = Tables[TableName];

export function docText(table: TableName, doc: AnyDoc): string {
  if (table === "steps") return stepText(doc as StepDoc) ?? JSON.stringify(doc);
  if (table === "runs") return runText(doc as RunDoc) ?? JSON.stringify(doc);
  if (table === "run_tools") return runToolText(doc as RunToolDoc) ?? JSON.stringify(doc);
  return JSON.stringify(doc);
}

/** Printable ASCII that JSON spells as it is. */
const PLAIN = /^[ !#-[\]-~]*$/;

export function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

const orNull = (text: string | null): string => (text === null ? "null" : quoted(text));

function runToolText({ run_id, tool, calls, standing }: RunToolDoc): string | undefined {
  if (!Number.isFinite(calls + standing)) return undefined;
  return `{"run_id":${quoted(run_id)},"tool":${quoted(tool)},"calls":${calls},"standing":${standing}}`;
}

type Facts = Pick<
  RunDoc,
  | "run_id"
  | "principal"
  | "actor"
  | "mode"
  | "tenant"
  | "environment"
  | "reason"
  | "scope"
  | "created_ms"
  | "salt"
>;

/** What never changes of a run, by the object that its copies share. */
const spelled = new WeakMap<SealedScope, { facts: Facts; text: string }>();

function runText(run: RunDoc): string | undefined {
  const { next_step, next_run_seq, open, uncertain, compensation_failed, awaiting, open_approvals } = run;
  const sum = next_step + next_run_seq + open + uncertain + compensation_failed + awaiting + open_approvals;
  if (run.plans !== undefined || !Number.isFinite(sum)) return undefined;
  return `${unchanging(run)},"next_step":${next_step},"next_run_seq":${next_run_seq},"open":${open},"uncertain":${uncertain},"compensation_failed":${compensation_failed},"awaiting":${awaiting},"open_approvals":${open_approvals}}`;
}

function unchanging(run: RunDoc): string {
  const known = spelled.get(run.scope);
  if (known !== undefined && isSame(known.facts, run)) return known.text;
  const { run_id, principal, actor, mode, tenant, environment, reason, scope, created_ms, salt } = run;
  const facts: Facts = {
    run_id,
    principal,
    actor,
    mode,
    tenant,
    environment,
    reason,
    scope,
    created_ms,
    salt,
  };
  const text = JSON.stringify(facts).slice(0, -1);
  spelled.set(scope, { facts, text });
  return text;
}

function isSame(a: Facts, b: Facts): boolean {
  return (
    a.run_id === b.run_id &&
    a.principal === b.principal &&
    a.actor === b.actor &&
    a.mode === b.mode &&
    a.tenant === b.tenant &&
    a.environment === b.environment &&
    a.reason === b.reason &&
    a.created_ms === b.created_ms &&
    a.salt === b.salt
  );
}

function stepText(step: StepDoc): string | undefined {
  const sum =
    step.step +
    step.risk_score +
    step.intended_ms +
    step.intended_seq +
    (step.finished_ms === null ? 0 : step.finished_ms) +
    (step.succeeded_seq === null ? 0 : step.succeeded_seq) +
    (step.compensated_seq === null ? 0 : step.compensated_seq);
  if (!Number.isFinite(sum)) return undefined;
  if (
    step.repeat_of !== undefined ||
    step.undo_request !== undefined ||
    step.unverified !== undefined ||
    step.plan !== undefined ||
    step.before_by !== undefined ||
    step.before_hash !== undefined ||
    step.after_hash !== undefined ||
    step.closes_ms !== undefined ||
    step.depends_on.length > 0 ||
    step.requires.length > 0
  )
    return undefined;
  const asked = `{"run_id":${quoted(step.run_id)},"step":${step.step},"tool":${quoted(step.tool)},"reason":${quoted(step.reason)},"effect":${orNull(step.effect)},"status":${quoted(step.status)},"depends_on":[],"requires":[]`;
  const undo = `,"compensation_tool":${orNull(step.compensation_tool)},"handle":${orNull(step.handle)},"error":${orNull(step.error)}`;
  const facts = `,"manifest_version":${orNull(step.manifest_version)},"manifest_hash":${orNull(step.manifest_hash)},"risk_score":${step.risk_score},"args_hash":${quoted(step.args_hash)},"result_hash":${orNull(step.result_hash)}`;
  const places = `,"intended_ms":${step.intended_ms},"finished_ms":${step.finished_ms},"intended_seq":${step.intended_seq},"succeeded_seq":${step.succeeded_seq},"compensated_seq":${step.compensated_seq}`;
  return `${asked}${undo}${facts}${places},"idempotency":${orNull(step.idempotency)}}`;
}
