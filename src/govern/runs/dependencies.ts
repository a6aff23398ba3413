/**
 * Dependencies of a step: the steps that its caller named, and every step of a required tool that was active when the
 * step was accepted. The second kind is derived from ledger positions instead of stored, so that the cost of an intent
 * does not grow with the number of active steps.
 */
import type { StepDoc } from "./run.ts";

/** Returns a function from a step of the run to the numbers of the steps it depends on, ascending. */
export function stepDependencies(steps: readonly StepDoc[]): (step: StepDoc) => number[] {
  const byTool = new Map<string, StepDoc[]>();
  for (const step of steps) {
    const same = byTool.get(step.tool);
    if (same === undefined) byTool.set(step.tool, [step]);
    else same.push(step);
  }
  return (step) => {
    if (step.requires.length === 0) return [...step.depends_on].sort((a, b) => a - b);
    const found = new Set(step.depends_on);
    for (const tool of step.requires) {
      for (const other of byTool.get(tool) ?? []) {
        if (other.step >= step.step) break;
        if (stoodAt(other, step.intended_seq)) found.add(other.step);
      }
    }
    return [...found].sort((a, b) => a - b);
  };
}

function stoodAt(step: StepDoc, seq: number): boolean {
  if (step.succeeded_seq === null || step.succeeded_seq >= seq) return false;
  return step.compensated_seq === null || step.compensated_seq > seq;
}
