/**
 * Groups a run's steps by the resource they changed. Calls that overlapped may have taken effect in any order, which
 * the ledger cannot show. An undo is therefore compared with the states that the other calls on its resource started
 * from and left.
 */
import type { StepDoc } from "../../govern/runs/run.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { StateCheck } from "./classify.ts";

/** A step whose undo reads the state first, and that read. */
export interface StepWithRead {
  doc: StepDoc;
  state: Pick<StateCheck, "read">;
}

const thingOf = ({ read }: StepWithRead["state"]): string => toCanonicalJson([read.tool, read.arguments]);

/** A step whose undo reads the state first, with its complete check. */
export interface StatefulStep {
  doc: StepDoc;
  state: StateCheck;
}

/** For each step, the steps that changed the same resource and compare the same parts of it, oldest first. */
export function groupByResource(steps: readonly StatefulStep[]): Map<number, readonly StatefulStep[]> {
  const groups = new Map<string, StatefulStep[]>();
  const byStep = new Map<number, readonly StatefulStep[]>();
  for (const one of steps) {
    const { read, declared } = one.state;
    const resource = toCanonicalJson([read.tool, read.arguments, declared.ignore ?? []]);
    const group = groups.get(resource) ?? [];
    group.push(one);
    groups.set(resource, group);
    byStep.set(one.doc.step, group);
  }
  return byStep;
}

/** Whether two reads of one resource compare the same parts of the answer, and so produce comparable hashes. */
export const hasComparableReads = (
  a: Pick<StateCheck, "declared">,
  b: Pick<StateCheck, "declared">,
): boolean => toCanonicalJson(a.declared.ignore ?? []) === toCanonicalJson(b.declared.ignore ?? []);

/** Whether the other step may have taken effect after this one: it ended after this one was accepted. */
function mayBeOver(doc: StepDoc, other: StepDoc): boolean {
  return other.step !== doc.step && endOf(other) > doc.intended_seq;
}

/** Whether the other step certainly took effect after this one: it was accepted after this one ended. */
export const isLater = (doc: Placed, other: Placed): boolean => other.intended_seq > endOf(doc);

type Placed = Pick<StepDoc, "intended_seq" | "succeeded_seq">;
const endOf = ({ succeeded_seq }: Placed): number => succeeded_seq ?? Number.POSITIVE_INFINITY;

/** An active step, with the latest end position up to and including it. */
interface ActiveStep {
  doc: StepDoc;
  ended: number;
}

/** The active steps of a run, by resource. */
export class StepsByResource {
  private readonly active = new Map<string, ActiveStep[]>();
  private readonly thing = new Map<number, string>();

  /** `steps` are oldest first. */
  constructor(steps: Iterable<StepWithRead>) {
    for (const { doc, state } of steps) {
      const thing = thingOf(state);
      this.thing.set(doc.step, thing);
      const others = this.active.get(thing) ?? [];
      others.push({ doc, ended: Math.max(endOf(doc), others.at(-1)?.ended ?? 0) });
      this.active.set(thing, others);
    }
  }

  /** Other active steps on its resource that may have taken effect after it. */
  overlapping(doc: StepDoc): StepDoc[] {
    const others = this.on(doc.step);
    const found: StepDoc[] = [];
    for (let at = others.length - 1; at >= 0 && others[at]!.ended > doc.intended_seq; at--)
      if (mayBeOver(doc, others[at]!.doc)) found.push(others[at]!.doc);
    return found;
  }

  undone(step: number): void {
    const others = this.on(step);
    const at = others.findLastIndex(({ doc }) => doc.step === step);
    if (at !== -1) others.splice(at, 1);
  }

  private on(step: number): ActiveStep[] {
    return this.active.get(this.thing.get(step) ?? "") ?? [];
  }
}
