/**
 * JSON text of documents. The documents of every intent and outcome are built by hand, in half the time of
 * JSON.stringify: the constant part of a run is serialized only once. Members that later calls change come last, so
 * that such a change only replaces the end of the text. Unusual documents go through JSON.stringify, and both ways give
 * the same text.
 */
import type { TableDocs, TableName } from "../govern/port/tables.ts";
import type { PayloadDoc, RunDoc, RunToolDoc, SealedScope, StepDoc } from "../govern/runs/run.ts";
import { quoteJsonString } from "../kernel/json/canonical.ts";
import { jsonTextInSteps } from "../kernel/json/json-text.ts";
import { cachedResult } from "../kernel/json/large-value-cache.ts";

type AnyDoc = TableDocs[TableName];

export function docText(table: TableName, doc: AnyDoc): string {
  if (table === "steps") return stepText(doc as StepDoc) ?? JSON.stringify(doc);
  if (table === "runs") return runText(doc as RunDoc) ?? JSON.stringify(doc);
  if (table === "run_tools") return runToolText(doc as RunToolDoc) ?? JSON.stringify(doc);
  if (table === "payloads") return payloadText(doc as PayloadDoc) ?? JSON.stringify(doc);
  return JSON.stringify(doc);
}

/** The text of large arguments was written before the unit of work. */
function payloadText(doc: PayloadDoc): string | undefined {
  const text = doc.args === undefined ? undefined : cachedResult<string>(doc.args, jsonTextInSteps);
  if (text === undefined || Object.keys(doc)[0] !== "args") return undefined;
  const { args: _, ...rest } = doc;
  return `{"args":${text},${JSON.stringify(rest).slice(1)}`;
}

/**
 * Returns the last members as an object if nothing else of the document changed, or undefined if the journal needs the
 * whole document. Journals contain this text, so a different order of members needs a new journal format.
 */
export function changedText(table: TableName, before: AnyDoc, after: AnyDoc): string | undefined {
  if (table === "steps") return changedStep(before as StepDoc, after as StepDoc);
  if (table === "runs") return changedRun(before as RunDoc, after as RunDoc);
  if (table === "run_tools") return changedRunTool(before as RunToolDoc, after as RunToolDoc);
  return undefined;
}

/** Replaces the last members in the text of a document. */
export function withChange(before: string, members: string): string | undefined {
  const from = before.lastIndexOf(`,${members.slice(1, members.indexOf(":") + 1)}`);
  return from < 0 ? undefined : `${before.slice(0, from + 1)}${members.slice(1)}`;
}

const orNull = (text: string | null): string => (text === null ? "null" : quoteJsonString(text));

function runToolText(doc: RunToolDoc): string | undefined {
  const counts = toolCounts(doc);
  return counts && `{"run_id":${quoteJsonString(doc.run_id)},"tool":${quoteJsonString(doc.tool)},${counts}`;
}

function toolCounts({ calls, standing }: RunToolDoc): string | undefined {
  return Number.isFinite(calls + standing) ? `"calls":${calls},"standing":${standing}}` : undefined;
}

function changedRunTool(before: RunToolDoc, after: RunToolDoc): string | undefined {
  if (before.run_id !== after.run_id || before.tool !== after.tool) return undefined;
  const counts = toolCounts(before) && toolCounts(after);
  return counts && `{${counts}`;
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

/** The constant part of a run, by the scope object that its copies share. */
const spelled = new WeakMap<SealedScope, { facts: Facts; text: string }>();

function runText(run: RunDoc): string | undefined {
  const counts = runCounts(run);
  return counts && `${unchanging(run)},${counts}`;
}

function changedRun(before: RunDoc, after: RunDoc): string | undefined {
  if (before.plans !== undefined || before.scope !== after.scope || !isSame(before, after)) return undefined;
  if (
    hasRareMembers(before) ||
    before.acting !== undefined ||
    before.undo_left !== undefined ||
    (before.called_ms !== undefined && after.called_ms === undefined)
  )
    return undefined;
  const counts = runCounts(after);
  return counts && `{${counts}`;
}

function runCounts(run: RunDoc): string | undefined {
  const { next_step, next_run_seq, open, uncertain, compensation_failed, awaiting, open_approvals } = run;
  const sum = next_step + next_run_seq + open + uncertain + compensation_failed + awaiting + open_approvals;
  const { plans, undo_left, called_ms, acting } = run;
  if (
    hasRareMembers(run) ||
    plans !== undefined ||
    undo_left !== undefined ||
    acting !== undefined ||
    !Number.isFinite(sum + (called_ms ?? 0))
  )
    return undefined;
  const called = called_ms === undefined ? "" : `,"called_ms":${called_ms}`;
  return `"next_step":${next_step},"next_run_seq":${next_run_seq},"open":${open},"uncertain":${uncertain},"compensation_failed":${compensation_failed},"awaiting":${awaiting},"open_approvals":${open_approvals}${called}}`;
}

const hasRareMembers = ({ child_of, children, tree_open_approvals, sandbox }: RunDoc): boolean =>
  child_of !== undefined ||
  children !== undefined ||
  tree_open_approvals !== undefined ||
  sandbox !== undefined;

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
  if (!isPlainStep(step)) return undefined;
  const asked = `{"run_id":${quoteJsonString(step.run_id)},"step":${step.step},"tool":${quoteJsonString(step.tool)},"reason":${quoteJsonString(step.reason)},"effect":${orNull(step.effect)},"depends_on":[],"requires":[]`;
  const facts = `,"compensation_tool":${orNull(step.compensation_tool)},"manifest_version":${orNull(step.manifest_version)},"manifest_hash":${orNull(step.manifest_hash)},"risk_score":${step.risk_score},"args_hash":${quoteJsonString(step.args_hash)}`;
  const places = `,"intended_ms":${step.intended_ms},"intended_seq":${step.intended_seq},"idempotency":${orNull(step.idempotency)}`;
  return `${asked}${facts}${places},${stepState(step)}`;
}

function changedStep(before: StepDoc, after: StepDoc): string | undefined {
  const isSameCall =
    before.run_id === after.run_id &&
    before.step === after.step &&
    before.tool === after.tool &&
    before.reason === after.reason &&
    before.effect === after.effect &&
    before.compensation_tool === after.compensation_tool &&
    before.manifest_version === after.manifest_version &&
    before.manifest_hash === after.manifest_hash &&
    before.risk_score === after.risk_score &&
    before.args_hash === after.args_hash &&
    before.intended_ms === after.intended_ms &&
    before.intended_seq === after.intended_seq &&
    before.idempotency === after.idempotency;
  return isSameCall && isPlainStep(before) && isPlainStep(after) ? `{${stepState(after)}` : undefined;
}

function stepState(step: StepDoc): string {
  return `"status":${quoteJsonString(step.status)},"handle":${orNull(step.handle)},"error":${orNull(step.error)},"result_hash":${orNull(step.result_hash)},"finished_ms":${step.finished_ms},"succeeded_seq":${step.succeeded_seq},"compensated_seq":${step.compensated_seq}}`;
}

function isPlainStep(step: StepDoc): boolean {
  const sum =
    step.step +
    step.risk_score +
    step.intended_ms +
    step.intended_seq +
    (step.finished_ms === null ? 0 : step.finished_ms) +
    (step.succeeded_seq === null ? 0 : step.succeeded_seq) +
    (step.compensated_seq === null ? 0 : step.compensated_seq);
  return (
    Number.isFinite(sum) &&
    step.repeat_of === undefined &&
    step.undo_request === undefined &&
    step.undo_covers === undefined &&
    step.unverified === undefined &&
    step.plan === undefined &&
    step.before_by === undefined &&
    step.before_hash === undefined &&
    step.after_hash === undefined &&
    step.effect_check === undefined &&
    step.effect_check_by === undefined &&
    step.closes_ms === undefined &&
    step.ref === undefined &&
    step.fed_by === undefined &&
    step.line === undefined &&
    step.depends_on.length === 0 &&
    step.requires.length === 0
  );
}
