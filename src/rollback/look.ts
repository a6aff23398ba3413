/**
 * Looking at what is there now, for a plan. A run's eyes read each thing once; where a newer undo will change it
 * first, what the older one will meet is worked out, or left open where it cannot be.
 */
import { stateHash } from "../engine/before.ts";
import { canonical } from "../kernel/canonical.ts";
import { assertJson, type Json } from "../kernel/json.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { PayloadDoc, RunDoc, StepDoc } from "../model/run.ts";
import { classify, type StateCheck, type UndoCall } from "./classify.ts";
import { besideOf, compareState } from "./conflict.ts";
import type { Reader, ReadRequest, UndoObjection } from "./ports.ts";
import { readEach } from "./read-each.ts";
import { type StatefulStep, Things } from "./things.ts";

/** Who can look; `objection` says which tools are not to be called. */
export interface Lookout {
  reader: Reader;
  objection?: UndoObjection | null | undefined;
}

/** The run with what its undos are built from. */
export interface Surroundings {
  run: Pick<RunDoc, "run_id" | "salt">;
  steps: readonly StepDoc[];
  manifests: ReadonlyMap<string, Manifest>;
  payloads: readonly (PayloadDoc | undefined)[];
}

/** For one run's plan no more reads are made than these, for its newest steps first. */
const MOST_READS = 100;
const AT_ONCE = 8;
const READ_MS = 10_000;

/** What the read of a step's `before` shows now; `seen` is absent where newer undos will change it first. */
export interface StateNow {
  is: Json;
  seen?: { current_hash: string; conflict: boolean };
}

/** What a read showed, in one run's eyes. Runs that see the same under the same name look at the same `place`. */
interface Shown {
  is: Json;
  salt: string;
  place: string;
}

/** What is there, and what will be while undos are done one after another. */
export class States {
  private readonly shown: ReadonlyMap<string, Shown>;
  /** What the undos so far put there, by place. */
  private readonly expected = new Map<string, { is: Json; read: ReadRequest }>();
  private readonly touched = new Set<string>();
  /** By run. */
  private readonly things: ReadonlyMap<string, Things>;

  constructor(shown: ReadonlyMap<string, Shown>, things: ReadonlyMap<string, Things>) {
    this.shown = shown;
    this.things = things;
  }

  /** What this undo will meet; undefined where nothing is, or could be, read. */
  meet(doc: StepDoc, { state }: UndoCall): StateNow | undefined {
    const { run_id } = doc;
    const shown = state === null ? undefined : this.shown.get(keyOf(run_id, state.read));
    if (state === null || shown === undefined) return undefined;
    const { is, salt, place } = shown;
    const left = this.expected.get(place);
    const moved = left === undefined && texts(state.read.arguments).some((text) => this.touched.has(text));
    if (moved) return { is };
    const current_hash = stateHash(salt, state.declared, left === undefined ? is : left.is);
    const others = this.things.get(run_id)?.beside(doc) ?? [];
    const beside = others.map((other) => besideOf(doc, other));
    const seen = compareState(state, current_hash, beside);
    return { is, seen: { current_hash, conflict: seen === "conflict" || seen === "overlapped" } };
  }

  undone(doc: StepDoc, { state, args }: UndoCall): void {
    this.things.get(doc.run_id)?.undone(doc.step);
    const place = state === null ? undefined : this.shown.get(keyOf(doc.run_id, state.read))?.place;
    // An undo may name its target otherwise than its read does, such as by the name that the disk has.
    const changes = new Set([...texts(args), ...texts(state?.read.arguments ?? null)]);
    for (const text of changes) this.touched.add(text);
    // What another undo puts there, such as a move back, is not what this one left.
    for (const [other, { read }] of this.expected)
      if (other !== place && texts(read.arguments).some((text) => changes.has(text)))
        this.expected.delete(other);
    if (state !== null && place !== undefined) this.expected.set(place, { is: state.was, read: state.read });
  }
}

const keyOf = (run_id: string, { tool, arguments: args }: ReadRequest): string =>
  canonical([run_id, tool, args]);

/** Reads, in each run's eyes, all that its undos will look at. */
export async function readStates(
  runs: readonly Surroundings[],
  { reader, objection }: Lookout,
  now_ms: number,
): Promise<States> {
  const shown = new Map<string, Shown>();
  const things = new Map<string, Things>();
  const queue = runs.flatMap((run) => {
    const stated = listStateful(run, now_ms);
    things.set(run.run.run_id, new Things(stated));
    return [...readsOf(run, stated)].map(([key, state]) => ({ run, key, state }));
  });
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { run_id, salt } = next.run.run;
      const { read, declared } = next.state;
      try {
        if (await objection?.([read.tool])) continue;
        const signal = AbortSignal.timeout(READ_MS);
        const is = await readEach((one) => reader(one, signal, run_id), read, signal);
        assertJson(is, "current");
        const place = canonical([read.tool, read.arguments, stateHash("", declared, is)]);
        shown.set(next.key, { is, salt, place });
      } catch {
        // What cannot be read is left out of the plan; the undo itself will say so.
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return new States(shown, things);
}

/** The steps whose undo looks first, oldest first. */
export function listStateful({ steps, manifests, payloads }: Surroundings, now_ms: number): StatefulStep[] {
  return steps.flatMap((doc) => {
    const manifest = doc.manifest_hash === null ? undefined : manifests.get(doc.manifest_hash);
    const standing = classify(doc, manifest, payloads[doc.step], now_ms);
    const state = standing?.kind === "compensate" ? standing.undo.state : null;
    return state === null ? [] : [{ doc, state }];
  });
}

function readsOf({ run }: Surroundings, stated: readonly { state: StateCheck }[]): Map<string, StateCheck> {
  const reads = new Map<string, StateCheck>();
  for (const { state } of stated.toReversed()) {
    if (reads.size === MOST_READS) break;
    reads.set(keyOf(run.run_id, state.read), state);
  }
  return reads;
}

function texts(value: Json): string[] {
  if (typeof value === "string") return value === "" ? [] : [value];
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap(texts);
}
