/** State of a run: needs attention, work in progress, or neither. The only place that determines it. */
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { EngineCore } from "../core.ts";
import { allRows } from "../port/pages.ts";
import type { RunDoc, RunState } from "./run.ts";

/** Determines the states of the runs in one listing; shared data is read once. */
export class RunStates {
  private readonly core: Pick<EngineCore, "store" | "env">;
  private planned: Promise<Set<string>> | undefined;

  constructor(core: Pick<EngineCore, "store" | "env">) {
    this.core = core;
  }

  async stateOf(run: RunDoc): Promise<RunState> {
    if (await this.needsAttention(run)) return "needs attention";
    return (await this.isOpen(run)) ? "open" : "settled";
  }

  async needsAttention(run: RunDoc): Promise<boolean> {
    const { uncertain, compensation_failed, awaiting, open, undo_left } = run;
    if (uncertain > 0 || compensation_failed > 0 || awaiting > 0 || undo_left !== undefined) return true;
    if (open === 0) return false;
    const { store, env } = this.core;
    const [oldest] = await store.list("steps", { owner: run.run_id, tag: "intended", limit: 1 });
    return oldest !== undefined && env.now() - oldest.doc.intended_ms > SERVICE_LIMITS.unresolved_after_ms;
  }

  private async isOpen({ run_id, open, open_approvals, plans, called_ms }: RunDoc): Promise<boolean> {
    if (open > 0 || open_approvals > 0 || (plans?.length ?? 0) > 0) return true;
    if (called_ms !== undefined && this.core.env.now() - called_ms < SERVICE_LIMITS.run_quiet_ms) return true;
    this.planned ??= this.pendingPlans();
    return (await this.planned).has(run_id);
  }

  private async pendingPlans(): Promise<Set<string>> {
    const runs = new Set<string>();
    for await (const { doc } of allRows(this.core.store, "plans", { tag: "pending" })) runs.add(doc.run_id);
    return runs;
  }
}
