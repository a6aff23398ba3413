/**
 * Who holds a step back. Steps are visited newest first; each one that will stay is told here and from
 * then on holds everything it depends on. Dependencies through `requires` are kept by tool and told
 * apart by ledger position, so the whole visit is linear in the steps.
 */
import type { StepDoc } from "../model/run.ts";

/** A step may have thousands of dependents; naming this many says enough, and keeps answers small. */
export const MAX_BLOCKERS = 50;

interface ToolHold {
  holder: number;
  /** Where the dependent was accepted: it depends on what had succeeded before. */
  seq: number;
}

const NONE: readonly ToolHold[] = [];
/** Most steps hold no other up; a long plan must not pay for lists that stay empty. */
const NO_STEPS: readonly number[] = [];

export class Dependents {
  private readonly byStep = new Map<number, Set<number>>();
  private readonly byTool = new Map<string, { holds: ToolHold[]; known: Set<number> }>();

  /** The steps that must go before this one can, oldest first. Every newer step has been visited. */
  blockersOf(step: StepDoc): readonly number[] {
    const { succeeded_seq } = step;
    const direct = this.byStep.get(step.step);
    const holds = succeeded_seq === null ? NONE : (this.byTool.get(step.tool)?.holds ?? NONE);
    if (direct === undefined && holds.length === 0) return NO_STEPS;
    const found = new Set(direct);
    // Newest first, so the holds that were accepted after this step succeeded come at the front.
    for (const { holder, seq } of holds) {
      if (seq < succeeded_seq! || found.size >= MAX_BLOCKERS) break;
      found.add(holder);
    }
    return [...found].sort((a, b) => a - b);
  }

  /** `via` stays because of `holders` (itself, or whoever depends on it): what it depends on is held. */
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
        // Its first entry has the highest position and covers all that a later one would.
        if (held.known.has(holder)) continue;
        held.known.add(holder);
        held.holds.push({ holder, seq: intended_seq });
      }
      this.byTool.set(tool, held);
    }
  }
}
