/** One history on both sides: the first thing that they say differently, if any, and the least of it. */
import type { Action, Said } from "./actions.ts";
import { Model } from "./model.ts";
import { type Handle, Service } from "./service.ts";

export interface Disagreement {
  /** The actions up to the one that is answered differently. */
  trace: Action[];
  model: unknown;
  service: unknown;
}

export async function play(
  actions: readonly Action[],
  label: string,
  seed: number,
  handle: Handle,
): Promise<Disagreement | undefined> {
  const model = new Model();
  const service = new Service(label, seed, handle);
  for (const [i, action] of actions.entries()) {
    // A history that has lost its first action has nobody to ask.
    if (model.runs.length === 0 && "run" in action) continue;
    const expected = model.perform(action);
    const got = await service.perform(action).catch((error: Error): Said => {
      return { answer: error.stack ?? error.message, events: [] };
    });
    if (same(expected, got)) continue;
    // After a disagreement it may be unable to tidy up, too.
    await service.end().catch(() => {});
    return { trace: actions.slice(0, i + 1), model: expected, service: got };
  }
  const expected = {
    steps: model.runs.map(({ steps }) => steps.map(({ tool, status }) => `${tool} ${status}`)),
    requests: model.requests.map(({ status }) => status),
    plans: model.plans.map(({ status }) => status),
  };
  const got = await service.state();
  await service.end().catch(() => {});
  return same(expected, got) ? undefined : { trace: [...actions], model: expected, service: got };
}

/** Leaves out every action that a disagreeing history does not need. */
export async function least(
  found: Disagreement,
  again: (actions: readonly Action[]) => Promise<Disagreement | undefined>,
): Promise<Disagreement> {
  let smallest = found;
  for (let size = smallest.trace.length >> 1; size > 0; ) {
    const before = smallest.trace.length;
    for (let from = 0; from < smallest.trace.length; ) {
      const rest = smallest.trace.filter((_, i) => i < from || i >= from + size);
      const still = await again(rest);
      if (still === undefined) from += size;
      else smallest = still;
    }
    // One at a time until nothing more can go.
    if (size > 1 || smallest.trace.length === before) size >>= 1;
  }
  return smallest;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
