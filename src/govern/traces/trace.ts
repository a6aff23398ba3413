/**
 * Values of a run that are followed from results into later calls: fingerprints of foreign values (from tools with a
 * source label) and of given values (from people, and from tools without one). Nothing is stored unless the policy has
 * a flow with `carries`.
 */
import type { ToolLabels } from "../../rules/manifest/labels.ts";
import type { LostCause } from "../../rules/trace/lost-causes.ts";

/** The call whose result held a value first. */
export interface TraceOrigin {
  run_id: string;
  step: number;
  tool: string;
}

/** A tool as it was when its result was followed, so that a later manifest does not hide where values came from. */
export interface TracedTool extends ToolLabels {
  tool: string;
}

/** State of all followed values of a run and its child runs. The values themselves are in marks. */
export interface TraceDoc {
  run_id: string;
  tools: TracedTool[];
  /** Runs other than `run_id` that values came from. */
  runs: string[];
  /** Number of fingerprints of each kind; both have the same maximum. */
  foreign: number;
  given: number;
  /** Calls of tools with a source label whose result is not known yet. */
  open: MarkedOrigin[];
  /** Why values can no longer be distinguished, so that every value counts as carried; absent if they can. */
  lost?: LostCause;
  /** When people's texts were added, newest last. */
  texts?: GivenText[];
  /** Characters of all given texts. */
  given_chars?: number;
  /** Number of values that are followed into other runs of the tenant, too. */
  shared?: number;
}

/** A text of a person: its time and length, never its content. */
export interface GivenText {
  at_ms: number;
  chars: number;
}

/** Positions in `runs` (0 is the run itself) and `tools`, with the step between them. */
export type MarkedOrigin = [run: number, step: number, tool: number];

/** 0 for a given value, otherwise the call that a foreign value came from. */
export type TraceMark = 0 | MarkedOrigin;

/** One part of a run's fingerprints. */
export interface TraceMarksDoc {
  run_id: string;
  marks: Record<string, TraceMark>;
}

/** A followed value. `run_id` is the run that had it last, which the document is deleted with. */
export interface TenantMarkDoc {
  run_id: string;
  /** The latest call of each tool, newest last. */
  from: TenantOrigin[];
}

/** `tool` is a position in the tenant's list of tools. */
export type TenantOrigin = [at_ms: number, run_id: string, step: number, tool: number];

export interface TenantTraceDoc {
  tools: TracedTool[];
  /** Calls whose results are not known, or not all followed. Every value counts as theirs. */
  open: OpenResult[];
  /** Time of the newest call that has left the list. */
  dropped_ms?: number;
}

export interface OpenResult {
  at_ms: number;
  run_id: string;
  step: number;
  tool: number;
  /** Why the known result is not followed. */
  lost?: LostCause;
}

/** A store that agents share, with the foreign values that were written there. */
export interface TaintedStoreDoc {
  /** The latest such call of each run, newest last. */
  writes: TaintedWrite[];
  /** Values written by runs that have left the list. */
  older?: StoreTaint;
}

/** Source labels of the foreign values. `lost` if some could not be followed. */
export interface StoreTaint {
  sources: string[];
  lost?: true;
}

interface TaintedWrite extends StoreTaint {
  run_id: string;
  step: number;
}

/** Number of parts, so that a decision reads only the parts with its values. */
const PARTS = 256;

/** Maximum unknown results that a run's state lists. */
export const MAX_OPEN_RESULTS = 100;
/** Maximum entries of `texts`. */
export const MAX_LISTED_TEXTS = 100;

export const marksKey = (run_id: string, fingerprint: number): string => `${run_id}/${fingerprint % PARTS}`;

export function newTrace(run_id: string): TraceDoc {
  return { run_id, tools: [], runs: [], foreign: 0, given: 0, open: [] };
}

/** Adds the call's run and tool to the lists of the state, and returns their positions. */
export function markOrigin(
  trace: TraceDoc,
  { run_id, step }: Omit<TraceOrigin, "tool">,
  tool: TracedTool,
): MarkedOrigin {
  const run = run_id === trace.run_id ? 0 : 1 + positionOf(trace.runs, run_id, (one) => one === run_id);
  return [run, step, positionOfTool(trace.tools, tool)];
}

export function originOf(
  trace: TraceDoc,
  [run, step, tool]: MarkedOrigin,
): TraceOrigin & { labels: TracedTool } {
  const labels = trace.tools[tool]!;
  return { run_id: run === 0 ? trace.run_id : trace.runs[run - 1]!, step, tool: labels.tool, labels };
}

/** Position of the tool in the list, which gets it if it is not there. */
export const positionOfTool = (tools: TracedTool[], tool: TracedTool): number =>
  positionOf(tools, tool, (one) => isSameTool(one, tool));

function positionOf<T>(list: T[], item: T, isSame: (one: T) => boolean): number {
  const at = list.findIndex(isSame);
  return at < 0 ? list.push(item) - 1 : at;
}

function isSameTool(a: TracedTool, b: TracedTool): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
