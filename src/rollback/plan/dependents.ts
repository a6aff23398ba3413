/**
 * Tracks which steps block the undo of which. The caller visits steps newest first and reports each one that stays
 * active; from then on that step blocks everything it depends on. Dependencies through `requires` are stored per tool
 * and told apart by ledger position, so a full visit takes time linear in the number of steps.
 */
import type { StepDoc } from "../../govern/runs/run.ts";

/** Limit on named dependents. A step may have thousands, and longer lists would only make responses larger. */
export const MAX_BLOCKERS = 50;

interface ToolHold {
  holder: number;
  /** Ledger position at which the dependent was accepted. It depends on steps that succeeded before that. */
  seq: number;
}

const NONE: readonly ToolHold[] = [];
/** Shared empty list. Most steps block no others, and a long plan must not allocate a list for each. */
const NO_STEPS: readonly number[] = [];

export class DependentSteps {
  private readonly byStep = new Map<number, Set<number>>();
  private readonly byTool = new Map<string, { holds: ToolHold[]; known: Set<number> }>();

  /** Steps that must be undone before this one, oldest first. The caller has visited every newer step. */
  blockersOf(step: StepDoc): readonly number[] {
    const { succeeded_seq } = step;
    const direct = this.byStep.get(step.step);
    const holds = succeeded_seq === null ? NONE : (this.byTool.get(step.tool)?.holds ?? NONE);
    if (direct === undefined && holds.length === 0) return NO_STEPS;
    const found = new Set(direct);
    // Newest first: the dependents accepted after this step succeeded are at the front.
    for (const { holder, seq } of holds) {
      if (seq < succeeded_seq! || found.size >= MAX_BLOCKERS) break;
      found.add(holder);
    }
    return [...found].sort((a, b) => a - b);
  }

  /** Marks everything that `via` depends on as blocked by `holders`: `via` itself, or the steps that block `via`. */
  hold(via: StepDoc, holders: readonly number[]): void {
    if (holders.length === 0) return;
    const { intended_seq } = via;
    for (const dependency of via.depends_on) {
      const held = this.byStep.get(dependency) ?? new Set<number>();
      for (const holder of holders) if (held.size < MAX_BLOCKERS) held.add(holder);
      this.byStep.set(dependency, held);
    }
    for (const tool of via.requires) {
      const held = this.byTool.get(tool) ?? { holds: [], known: new Set<number>() };
      for (const holder of holders) {
        // The first entry of a holder has the highest position, which covers any later entry.
        if (held.known.has(holder)) continue;
        held.known.add(holder);
        held.holds.push({ holder, seq: intended_seq });
      }
      this.byTool.set(tool, held);
    }
  }
}
