/**
 * Finds the calls that were built on steps that a rollback would undo, in all runs of the tenant: they carried a value
 * from there, read from a store that was written there, acted later on a resource that was changed there, or need such a
 * call of the same run. Follows them from call to call.
 */
import { stepKey } from "../../govern/document-keys.ts";
import type { FeedReason } from "../../govern/port/docs.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import type { StepDoc } from "../../govern/runs/run.ts";
import { resourceCallKeys } from "../../govern/traces/built-on.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { classifyUndo, needsUndo, type UndoClassification } from "../plan/classify.ts";
import { ledgerPlace } from "../plan/multi-run.ts";
import type { ChosenStep } from "./roll-back-with.ts";

/** Why a call counts as built on another: `from` it took a value, or both acted on one resource. */
export interface DependentReason extends ChosenStep {
  kind: FeedReason["kind"] | "resource" | "dependency";
  /** Where the value was in the later call's arguments. */
  path?: string;
}

export interface DependentStep extends ChosenStep {
  tool: string;
  /** Whether it could be undone, as in a plan. */
  kind: UndoClassification["kind"];
  because: DependentReason[];
}

export interface FoundDependents {
  /** Newest first. */
  dependents: DependentStep[];
  /** True if there are more than one rollback can cover. */
  cut: boolean;
}

/** Maximum calls that are looked at, with those that need no undo, and maximum reasons of one call. */
const MAX_LOOKED_AT = 10_000;
const MAX_REASONS = 20;

/** `roots` are the steps to be undone. Calls of the runs in `whole` are not listed. */
export async function findDependents(
  store: StateStore,
  { roots, whole }: { roots: readonly ChosenStep[]; whole: readonly string[] },
  now_ms: number,
): Promise<FoundDependents> {
  const search = new DependentSearch(store, roots, new Set(whole));
  await search.run();
  const found: { doc: StepDoc; listed: DependentStep }[] = [];
  for (const { doc, because } of search.found.values()) {
    const kind = await kindOf(store, doc, now_ms);
    if (kind !== null)
      found.push({ doc, listed: { run_id: doc.run_id, step: doc.step, tool: doc.tool, kind, because } });
  }
  found.sort((a, b) => ledgerPlace(b.doc) - ledgerPlace(a.doc));
  const max = SERVICE_LIMITS.cascade_steps;
  return {
    dependents: found.slice(0, max).map(({ listed }) => listed),
    cut: search.cut || found.length > max,
  };
}

async function kindOf(
  store: StateStore,
  doc: StepDoc,
  now_ms: number,
): Promise<UndoClassification["kind"] | null> {
  const manifest = doc.manifest_hash === null ? undefined : await store.get("manifests", doc.manifest_hash);
  const payload = await store.get("payloads", stepKey(doc.run_id, doc.step));
  return classifyUndo(doc, manifest, payload, now_ms)?.kind ?? null;
}

class DependentSearch {
  readonly found = new Map<string, { doc: StepDoc; because: DependentReason[] }>();
  cut = false;
  private readonly store: StateStore;
  private readonly whole: ReadonlySet<string>;
  private readonly open: ChosenStep[];
  private readonly steps = new Map<string, StepDoc[]>();

  constructor(store: StateStore, roots: readonly ChosenStep[], whole: ReadonlySet<string>) {
    this.store = store;
    this.open = [...roots];
    this.whole = whole;
  }

  async run(): Promise<void> {
    for (let from = this.open.shift(); from !== undefined; from = this.open.shift()) {
      const doc = await this.store.get("steps", stepKey(from.run_id, from.step));
      if (doc === undefined) continue;
      await this.byValue(doc);
      if (needsUndo(doc)) await this.byResource(doc);
      if (needsUndo(doc) && !this.whole.has(doc.run_id)) await this.byDependency(doc);
    }
  }

  private async byValue({ run_id, step }: StepDoc): Promise<void> {
    for await (const { doc } of allRows(this.store, "value_feeds", { owner: run_id, from: step, to: step }))
      for (const reason of doc.via) await this.add(doc.to, { run_id, step, ...reason });
  }

  private async byResource({ run_id, step, succeeded_seq }: StepDoc): Promise<void> {
    const first = await this.store.get("resource_calls", stepKey(run_id, step));
    if (first === undefined || first.read === true || succeeded_seq === null) return;
    for (const key of resourceCallKeys(first)) {
      const changed = await this.store.get("resource_calls", key);
      if (changed === undefined) continue;
      const later = { owner: changed.thing, from: succeeded_seq + 1 };
      for await (const { doc } of allRows(this.store, "resource_calls", later))
        await this.add(doc, { run_id, step, kind: "resource" });
    }
  }

  /** Later calls of its run that need it. */
  private async byDependency({ run_id, step, tool, succeeded_seq }: StepDoc): Promise<void> {
    for (const later of await this.stepsOf(run_id)) {
      if (later.step <= step) continue;
      const isRequired =
        later.requires.includes(tool) && succeeded_seq !== null && later.intended_seq > succeeded_seq;
      if (later.depends_on.includes(step) || isRequired)
        await this.add(later, { run_id, step, kind: "dependency" });
    }
  }

  private async stepsOf(run_id: string): Promise<readonly StepDoc[]> {
    const known = this.steps.get(run_id);
    if (known !== undefined) return known;
    const steps: StepDoc[] = [];
    for await (const { doc } of allRows(this.store, "steps", { owner: run_id })) steps.push(doc);
    this.steps.set(run_id, steps);
    return steps;
  }

  private async add({ run_id, step }: ChosenStep, reason: DependentReason): Promise<void> {
    if (this.whole.has(run_id)) return;
    const key = stepKey(run_id, step);
    const known = this.found.get(key);
    if (known !== undefined) {
      if (known.because.length < MAX_REASONS) known.because.push(reason);
      return;
    }
    if (this.found.size >= MAX_LOOKED_AT) {
      this.cut = true;
      return;
    }
    const doc = await this.store.get("steps", key);
    if (doc === undefined || doc.status === "failed" || doc.status === "compensated") return;
    this.found.set(key, { doc, because: [reason] });
    this.open.push({ run_id, step });
  }
}
