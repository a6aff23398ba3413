/** Drafting a policy from the captured history, and trying the draft on that same history before it is shown. */

import { capturedPages } from "../../../capture/read.ts";
import { notFound } from "../../../kernel/errors.ts";
import { plural } from "../../../kernel/words.ts";
import type { ApprovalDoc } from "../../../model/approval.ts";
import type { PolicyDoc } from "../../../model/policy/schema.ts";
import { didYouMean } from "../../../model/problems.ts";
import { allRows } from "../../../port/pages.ts";
import type { Store } from "../../../port/store.ts";
import type { SimulationReport } from "../../../sandbox/simulate.ts";
import {
  type AskedApprovals,
  draftPolicy,
  type PolicyDraft,
  type Suggestion,
} from "../../../sandbox/suggest/draft.ts";
import { Observation } from "../../../sandbox/suggest/observe.ts";
import { writeDraft } from "../../../sandbox/suggest/write.ts";
import type { App } from "../../app.ts";
import { simulateHistory } from "./jobs.ts";

/** How far back the draft looks unless it is told. */
export const SUGGESTION_PERIOD = "30d";

interface SuggestInput {
  since_ms: number;
  actor?: string | undefined;
}

/** The draft as a policy file; throws where no call is there to draft from. */
export async function suggestPolicy(app: App, { since_ms, actor }: SuggestInput): Promise<string> {
  const { store, env, rules } = app.core;
  const now = env.now();
  const { manifests, policy } = rules();
  const observed = new Observation();
  const actors = new Set<string>();
  for await (const page of capturedPages(store, { since_ms, until_ms: now }, now)) {
    for (const call of page) {
      actors.add(call.actor);
      if (actor === undefined || call.actor === actor) observed.add(call);
    }
  }
  if (observed.accepted === 0) throw notFound(nothingToDraftFrom(app, { since_ms, actor }, actors, observed));
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
  { settings }: App,
  { since_ms, actor }: SuggestInput,
  actors: ReadonlySet<string>,
  { calls }: Observation,
): string {
  const what = calls > 0 ? "accepted among the captured calls" : "captured";
  const whose = actor === undefined ? "" : ` of ${JSON.stringify(actor)}`;
  const since = new Date(since_ms).toISOString();
  const near = actor === undefined || actors.has(actor) ? "" : didYouMean(actor, [...actors]);
  const off = settings.capture.enabled ? "" : "; capture is off here (capture.enabled, or SVC_CAPTURE=1)";
  return `nothing to draft from: no call${whose} was ${what} since ${since}${near}${off}`;
}

async function permissionsHeld(
  store: Store,
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
  store: Store,
  since_ms: number,
  actor: string | undefined,
): Promise<AskedApprovals[]> {
  const found = new Map<string, AskedApprovals>();
  for await (const { doc } of allRows(store, "approvals", { from: since_ms }))
    if (actor === undefined || doc.actor === actor) countRequest(found, doc);
  return [...found.values()];
}

function countRequest(found: Map<string, AskedApprovals>, doc: ApprovalDoc): void {
  const { actor, tool, tenant, rule, status, run_id } = doc;
  if (rule === null || doc.kind !== "call") return;
  const key = JSON.stringify([actor, tool, tenant, rule]);
  const one = found.get(key) ?? { actor, tool, tenant, rule, approved: 0, otherwise: 0, runs: new Set() };
  found.set(key, one);
  // What is still open says nothing yet.
  if (status === "pending" || status === "escalated") return;
  const yes = (status === "approved" || status === "consumed") && !doc.break_glass;
  one.approved += yes ? 1 : 0;
  one.otherwise += yes ? 0 : 1;
  one.runs.add(run_id);
}

interface Tried {
  draft: PolicyDraft;
  report: SimulationReport;
  /** Entries that would have refused what history let through. */
  left_out: Suggestion[];
  /** Calls that the policy in force refuses today, with the draft or without it. */
  refused_anyway: number;
}

/** Leaves out whatever would have refused a call that went through, until nothing of the draft does. */
async function tryOut(app: App, active: PolicyDoc, draft: PolicyDraft, since_ms: number): Promise<Tried> {
  const left_out: Suggestion[] = [];
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
  observed: Observation,
  { report, left_out, refused_anyway }: Tried,
  { since_ms, now, actor }: { since_ms: number; now: number; actor: string | undefined },
): string[] {
  const day = (ms: number) => new Date(ms).toISOString();
  const { calls, runs, unchanged, newly_needs_approval, newly_allowed } = report.summary;
  const first = day(observed.first_ms);
  const whose = actor === undefined ? "" : ` of ${actor}`;
  return [
    `DRAFT by svc policy suggest, ${day(now)}: for a person to read and change before it is put in force.`,
    `Drawn from ${plural(observed.calls, "captured call")}${whose} in ${plural(observed.runs.size, "run")} since ${day(since_ms)}; the first is of ${first}.`,
    "It keeps the policy in force and adds to it. Above each line stands what it rests on.",
    "",
    `Simulated on the same history (${plural(calls, "call")} in ${plural(runs, "run")}): nothing that ran well is newly blocked${refused_anyway === 0 ? "" : " by what it adds"}.`,
    `  ${unchanged} unchanged, ${newly_needs_approval} newly need approval, ${newly_allowed} newly allowed`,
    ...(refused_anyway === 0
      ? []
      : [
          `  ${plural(refused_anyway, "call")} would be blocked by the rules in force today, without this draft, too`,
        ]),
    ...left_out.map(
      ({ entry, evidence }) => `  left out, since it would have blocked: ${entry.id} (${evidence})`,
    ),
    ...report.notes.map((note) => `  note: ${note}`),
  ];
}
