/**
 * What several calls of one run did to the same thing. Calls that were under way at the same time may have taken effect
 * in any order, which the ledger does not tell; so an undo is held to what the others on its thing met and left.
 */
import { canonical } from "../kernel/canonical.ts";
import type { StepDoc } from "../model/run.ts";
import type { StateCheck } from "./classify.ts";

/** A step whose undo looks first, and at what. */
export interface Stated {
  doc: StepDoc;
  state: Pick<StateCheck, "read">;
}

const thingOf = ({ read }: Stated["state"]): string => canonical([read.tool, read.arguments]);

/** A step whose undo reads first, with the whole of its check. */
export interface StatefulStep {
  doc: StepDoc;
  state: StateCheck;
}

/** By step, the steps that changed the same resource and are compared by the same parts, oldest first. */
export function groupByResource(steps: readonly StatefulStep[]): Map<number, readonly StatefulStep[]> {
  const groups = new Map<string, StatefulStep[]>();
  const byStep = new Map<number, readonly StatefulStep[]>();
  for (const one of steps) {
    const { read, declared } = one.state;
    const resource = canonical([read.tool, read.arguments, declared.ignore ?? []]);
    const group = groups.get(resource) ?? [];
    group.push(one);
    groups.set(resource, group);
    byStep.set(one.doc.step, group);
  }
  return byStep;
}

/** Whether two reads of one resource are compared by the same parts of the answer, and so by one hash. */
export const isCountedAlike = (a: Pick<StateCheck, "declared">, b: Pick<StateCheck, "declared">): boolean =>
  canonical(a.declared.ignore ?? []) === canonical(b.declared.ignore ?? []);

/** Whether the other one may have taken effect after this one: it ended when this one had been accepted. */
function mayBeOver(doc: StepDoc, other: StepDoc): boolean {
  return other.step !== doc.step && endOf(other) > doc.intended_seq;
}

/** Whether the other one was accepted when this one had ended: its effect came after this one's for sure. */
export const isLater = (doc: Placed, other: Placed): boolean => other.intended_seq > endOf(doc);

type Placed = Pick<StepDoc, "intended_seq" | "succeeded_seq">;
const endOf = ({ succeeded_seq }: Placed): number => succeeded_seq ?? Number.POSITIVE_INFINITY;

/** A step that stands, and where the last of those up to it ended. */
interface Standing {
  doc: StepDoc;
  ended: number;
}

/** The steps of a run that stand, by what they did something to. */
export class Things {
  private readonly standing = new Map<string, Standing[]>();
  private readonly thing = new Map<number, string>();

  /** Oldest first. */
  constructor(steps: Iterable<Stated>) {
    for (const { doc, state } of steps) {
      const thing = thingOf(state);
      this.thing.set(doc.step, thing);
      const others = this.standing.get(thing) ?? [];
      others.push({ doc, ended: Math.max(endOf(doc), others.at(-1)?.ended ?? 0) });
      this.standing.set(thing, others);
    }
  }

  /** The others on its thing that stand and may have taken effect after it. */
  beside(doc: StepDoc): StepDoc[] {
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

  private on(step: number): Standing[] {
    return this.standing.get(this.thing.get(step) ?? "") ?? [];
  }
}
