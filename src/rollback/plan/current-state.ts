/**
 * Reads the current state of resources for a plan. Each run reads each resource once. If a newer undo will change the
 * resource first, the plan predicts the state that an older undo will find, or leaves it open.
 */
import { stateHash } from "../../govern/decide/before-state.ts";
import type { PayloadDoc, RunDoc, StepDoc } from "../../govern/runs/run.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { assertJson, type JsonValue } from "../../kernel/json/json.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { ReaderFn, ReadRequest, UndoObjection } from "../ports.ts";
import { readEach } from "../undo/read-each.ts";
import { classifyUndo, type StateCheck, type UndoCall } from "./classify.ts";
import { compareState, overlapOf } from "./conflict.ts";
import { type StatefulStep, StepsByResource } from "./steps-by-resource.ts";

/** Reader for previews; `objection` names the reason not to call a tool. */
export interface StateReader {
  reader: ReaderFn;
  objection?: UndoObjection | null | undefined;
}

/** A run with the data from which its undos are built. */
export interface RunUndoContext {
  run: Pick<RunDoc, "run_id" | "salt">;
  steps: readonly StepDoc[];
  manifests: ReadonlyMap<string, ToolManifest>;
  payloads: readonly (PayloadDoc | undefined)[];
}

/** Limit on reads for one run's plan. The newest steps come first. */
const MAX_PLAN_READS = 100;
const AT_ONCE = 8;
const READ_MS = 10_000;

/** Current result of a step's `before` read. `seen` is absent if newer undos will change the resource first. */
export interface CurrentState {
  is: JsonValue;
  seen?: { current_hash: string; conflict: boolean };
}

/** One reading for one run. Runs that get the same answer to the same read share a `place`. */
interface Shown {
  is: JsonValue;
  salt: string;
  place: string;
}

/** Current state of the resources, and the predicted state after each undo. */
export class ResourceStates {
  private readonly shown: ReadonlyMap<string, Shown>;
  /** State that the undos so far restore, by place. */
  private readonly expected = new Map<string, { is: JsonValue; read: ReadRequest }>();
  private readonly touched = new Set<string>();
  /** By run. */
  private readonly things: ReadonlyMap<string, StepsByResource>;

  constructor(shown: ReadonlyMap<string, Shown>, things: ReadonlyMap<string, StepsByResource>) {
    this.shown = shown;
    this.things = things;
  }

  /** State that this undo will find; undefined if there is none or it could not be read. */
  meet(doc: StepDoc, { state }: UndoCall): CurrentState | undefined {
    const { run_id } = doc;
    const shown = state === null ? undefined : this.shown.get(keyOf(run_id, state.read));
    if (state === null || shown === undefined) return undefined;
    const { is, salt, place } = shown;
    const left = this.expected.get(place);
    const moved = left === undefined && texts(state.read.arguments).some((text) => this.touched.has(text));
    if (moved) return { is };
    const current_hash = stateHash(salt, state.declared, left === undefined ? is : left.is);
    const others = this.things.get(run_id)?.overlapping(doc) ?? [];
    const overlaps = others.map((other) => overlapOf(doc, other));
    const seen = compareState(state, current_hash, overlaps);
    return { is, seen: { current_hash, conflict: seen === "conflict" || seen === "overlapped" } };
  }

  undone(doc: StepDoc, { state, args }: UndoCall): void {
    this.things.get(doc.run_id)?.undone(doc.step);
    const place = state === null ? undefined : this.shown.get(keyOf(doc.run_id, state.read))?.place;
    // An undo may use another name for its target than its read does, such as the name on disk.
    const changes = new Set([...texts(args), ...texts(state?.read.arguments ?? null)]);
    for (const text of changes) this.touched.add(text);
    // If another undo changes the resource, such as a move back, the prediction for it no longer holds.
    for (const [other, { read }] of this.expected)
      if (other !== place && texts(read.arguments).some((text) => changes.has(text)))
        this.expected.delete(other);
    if (state !== null && place !== undefined) this.expected.set(place, { is: state.was, read: state.read });
  }
}

const keyOf = (run_id: string, { tool, arguments: args }: ReadRequest): string =>
  toCanonicalJson([run_id, tool, args]);

/** Reads, for each run, all states that its undos will check. */
export async function readStates(
  runs: readonly RunUndoContext[],
  { reader, objection }: StateReader,
  now_ms: number,
): Promise<ResourceStates> {
  const shown = new Map<string, Shown>();
  const things = new Map<string, StepsByResource>();
  const queue = runs.flatMap((run) => {
    const stated = listStateful(run, now_ms);
    things.set(run.run.run_id, new StepsByResource(stated));
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
        const place = toCanonicalJson([read.tool, read.arguments, stateHash("", declared, is)]);
        shown.set(next.key, { is, salt, place });
      } catch {
        // Unreadable state is left out of the plan; the undo itself will report it.
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return new ResourceStates(shown, things);
}

/** Steps whose undo reads the state first, oldest first. */
export function listStateful({ steps, manifests, payloads }: RunUndoContext, now_ms: number): StatefulStep[] {
  return steps.flatMap((doc) => {
    const manifest = doc.manifest_hash === null ? undefined : manifests.get(doc.manifest_hash);
    const classified = classifyUndo(doc, manifest, payloads[doc.step], now_ms);
    const state = classified?.kind === "compensate" ? classified.undo.state : null;
    return state === null ? [] : [{ doc, state }];
  });
}

function readsOf({ run }: RunUndoContext, stated: readonly { state: StateCheck }[]): Map<string, StateCheck> {
  const reads = new Map<string, StateCheck>();
  for (const { state } of stated.toReversed()) {
    if (reads.size === MAX_PLAN_READS) break;
    reads.set(keyOf(run.run_id, state.read), state);
  }
  return reads;
}

function texts(value: JsonValue): string[] {
  if (typeof value === "string") return value === "" ? [] : [value];
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap(texts);
}
