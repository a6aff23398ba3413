/** Drafts a policy from the captured history, and simulates the draft on that history before it is shown. */
import { capturedPages } from "../../capture/captured-calls.ts";
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { notFoundError } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { PolicyDoc } from "../../rules/policy/schema.ts";
import { didYouMean } from "../../rules/schema-problems.ts";
import type { SimulationReport } from "../../simulate/simulate.ts";
import {
  type ApprovalStats,
  draftPolicy,
  type PolicyDraft,
  type PolicySuggestion,
} from "../../simulate/suggest/draft.ts";
import { UsageObservation } from "../../simulate/suggest/observe.ts";
import { writeDraft } from "../../simulate/suggest/write.ts";
import type { ServiceApp } from "../app.ts";
import { simulateHistory } from "./jobs.ts";

/** Default period of the history. */
export const SUGGESTION_PERIOD = "30d";

interface SuggestInput {
  since_ms: number;
  actor?: string | undefined;
}

/** Returns the draft as a policy file. Throws if no captured call exists. */
export async function suggestPolicy(app: ServiceApp, { since_ms, actor }: SuggestInput): Promise<string> {
  const { store, env, rules } = app.core;
  const now = env.now();
  const { manifests, policy } = rules();
  const observed = new UsageObservation();
  const actors = new Set<string>();
  for await (const page of capturedPages(store, { since_ms, until_ms: now }, now)) {
    for (const call of page) {
      actors.add(call.actor);
      if (actor === undefined || call.actor === actor) observed.add(call);
    }
  }
  if (observed.accepted === 0)
    throw notFoundError(nothingToDraftFrom(app, { since_ms, actor }, actors, observed));
  const draft = draftPolicy(observed, {
    manifests,
    active: policy.doc,
    granted: await permissionsHeld(store, observed.runs),
    asked: await askedSince(store, since_ms, actor),
    actor: actor ?? null,
  });
  const tried = await tryOut(app, policy.doc, draft, since_ms);
  const head = headLines(observed, tried, { since_ms, now, actor });
  return writeDraft(policy.doc, tried.draft, head);
}

function nothingToDraftFrom(
  { settings }: ServiceApp,
  { since_ms, actor }: SuggestInput,
  actors: ReadonlySet<string>,
  { calls }: UsageObservation,
): string {
  const what = calls > 0 ? "accepted among the captured calls" : "captured";
  const whose = actor === undefined ? "" : ` of ${JSON.stringify(actor)}`;
  const since = new Date(since_ms).toISOString();
  const near = actor === undefined || actors.has(actor) ? "" : didYouMean(actor, [...actors]);
  const off = settings.capture.enabled ? "" : "; capture is off here (capture.enabled, or SVC_CAPTURE=1)";
  return `nothing to draft from: no call${whose} was ${what} since ${since}${near}${off}`;
}

async function permissionsHeld(
  store: StateStore,
  runs: ReadonlyMap<string, string>,
): Promise<Map<string, Set<string>>> {
  const held = new Map<string, Set<string>>();
  for (const [run_id, actor] of runs) {
    const permissions = held.get(actor) ?? new Set<string>();
    for (const one of (await store.get("runs", run_id))?.scope.permissions ?? []) permissions.add(one);
    held.set(actor, permissions);
  }
  return held;
}

async function askedSince(
  store: StateStore,
  since_ms: number,
  actor: string | undefined,
): Promise<ApprovalStats[]> {
  const found = new Map<string, ApprovalStats>();
  for await (const { doc } of allRows(store, "approvals", { from: since_ms }))
    if (actor === undefined || doc.actor === actor) countRequest(found, doc);
  return [...found.values()];
}

function countRequest(found: Map<string, ApprovalStats>, doc: ApprovalDoc): void {
  const { actor, tool, tenant, rule, status, run_id } = doc;
  if (rule === null || doc.kind !== "call") return;
  const key = JSON.stringify([actor, tool, tenant, rule]);
  const one = found.get(key) ?? { actor, tool, tenant, rule, approved: 0, otherwise: 0, runs: new Set() };
  found.set(key, one);
  // An open request has no result yet.
  if (status === "pending" || status === "escalated") return;
  const yes = (status === "approved" || status === "consumed") && !doc.break_glass;
  one.approved += yes ? 1 : 0;
  one.otherwise += yes ? 0 : 1;
  one.runs.add(run_id);
}

interface Tried {
  draft: PolicyDraft;
  report: SimulationReport;
  /** Entries that would have refused calls that were allowed. */
  left_out: PolicySuggestion[];
  /** Calls that the active policy refuses too. */
  refused_anyway: number;
}

/** Removes entries from the draft until it refuses no call that was allowed. */
async function tryOut(
  app: ServiceApp,
  active: PolicyDoc,
  draft: PolicyDraft,
  since_ms: number,
): Promise<Tried> {
  const left_out: PolicySuggestion[] = [];
  let { suggestions } = draft;
  for (;;) {
    const text = writeDraft(active, { ...draft, suggestions }, []);
    const since = new Date(since_ms).toISOString();
    const report = (await simulateHistory(app, { policy: { text, file: "draft" }, since })).read();
    const refusals = report.changes.filter(({ change }) => change === "newly_blocked");
    const causes = new Set(refusals.flatMap(({ by }) => by));
    const guilty = suggestions.filter((one) => causes.has(`${one.section.slice(0, -1)} ${one.entry.id}`));
    if (guilty.length === 0) {
      const refused_anyway = refusals.reduce((sum, { calls }) => sum + calls, 0);
      return { draft: { ...draft, suggestions }, report, left_out, refused_anyway };
    }
    left_out.push(...guilty);
    suggestions = suggestions.filter((one) => !guilty.includes(one));
  }
}

function headLines(
  observed: UsageObservation,
  { report, left_out, refused_anyway }: Tried,
  { since_ms, now, actor }: { since_ms: number; now: number; actor: string | undefined },
): string[] {
  const day = (ms: number) => new Date(ms).toISOString();
  const { calls, runs, unchanged, newly_needs_approval, newly_allowed } = report.summary;
  const first = day(observed.first_ms);
  const whose = actor === undefined ? "" : ` of ${actor}`;
  return [
    `DRAFT by svc policy suggest, ${day(now)}: review and edit it before you activate it.`,
    `Drawn from ${formatCountOf(observed.calls, "captured call")}${whose} in ${formatCountOf(observed.runs.size, "run")} since ${day(since_ms)}; the first is of ${first}.`,
    "It keeps the active policy and adds to it. Above each line is its evidence.",
    "",
    `Simulated on the same history (${formatCountOf(calls, "call")} in ${formatCountOf(runs, "run")}): nothing that ran well is newly blocked${refused_anyway === 0 ? "" : " by the additions"}.`,
    `  ${unchanged} unchanged, ${newly_needs_approval} newly need approval, ${newly_allowed} newly allowed`,
    ...(refused_anyway === 0
      ? []
      : [
          `  ${formatCountOf(refused_anyway, "call")} would also be blocked by the active rules, without this draft`,
        ]),
    ...left_out.map(
      ({ entry, evidence }) => `  left out, because it would have blocked: ${entry.id} (${evidence})`,
    ),
    ...report.notes.map((note) => `  note: ${note}`),
  ];
}
