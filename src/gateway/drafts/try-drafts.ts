/** Tests the drafted undos of one disposable upstream, and decides by the server's state whether each one works. */
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { ServiceApp } from "../../operations/app.ts";
import type { DrillTools } from "../../operations/drills/ports.ts";
import { type DraftTrial, makeUndoableCall, tryDraft } from "../../operations/drills/try-draft.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { drillsThrough } from "../drills.ts";
import type { McpGateway } from "../gateway.ts";
import { toolNameParser } from "../init/verbs.ts";
import { exampleArgs, learnValues } from "./example-args.ts";
import {
  judgeUndo,
  readState,
  readsFor,
  requiredOf,
  type ServerState,
  type StateRead,
} from "./state-reads.ts";
import type { DraftVerdict } from "./write-drafts.ts";

/** One tried tool: the trial, and what to write into its manifest, if anything. */
export interface TriedDraft {
  tool: string;
  trial: { found: TrialFinding; problem?: string };
  verdict: DraftVerdict | null;
}

/** `not shown`: no reading tool shows what the call did. `not tried`: the call could not be made. */
export type TrialFinding = DraftTrial["found"] | "not shown";

interface OfferedTool {
  tool: string;
  name: string;
  definition: JsonObject;
}

/** `app` has the drafts as approved manifests. `drafts` are the tools to try. */
export async function tryDrafts(
  app: ServiceApp,
  gateway: McpGateway,
  { upstream, drafts, by }: { upstream: string; drafts: readonly string[]; by: string },
): Promise<TriedDraft[]> {
  const offered = [...gateway.routes().values()].filter((route) => route.upstream.name === upstream);
  const trials = new DraftTrials(app, drillsThrough(gateway)(upstream).tools, offered, by);
  const tried: TriedDraft[] = [];
  for (const tool of drafts) {
    const manifest = app.core.rules().manifests.active(tool);
    const route = offered.find((one) => one.tool === tool);
    if (manifest === undefined || route === undefined) continue;
    tried.push(await trials.run(manifest, route, upstream));
  }
  return tried;
}

interface AskedTrial {
  manifest: ToolManifest;
  args: JsonObject;
  upstream: string;
  /** Whether no argument is a value of something that the trial made or found. */
  made_up: boolean;
}

const NO_TRIAL = { found: "not tried" } as const;

class DraftTrials {
  private readonly app: ServiceApp;
  private readonly tools: DrillTools;
  private readonly offered: readonly OfferedTool[];
  private readonly by: string;

  constructor(app: ServiceApp, tools: DrillTools, offered: readonly OfferedTool[], by: string) {
    this.app = app;
    this.tools = tools;
    this.offered = offered;
    this.by = by;
  }

  async run(manifest: ToolManifest, route: OfferedTool, upstream: string): Promise<TriedDraft> {
    const fixture = await this.fixtureFor(manifest, route);
    try {
      const { tool } = manifest;
      const made =
        manifest.drill === undefined
          ? exampleArgs(route.definition, {
              known: fixture.known,
              word: this.word(),
              also: changedBy(manifest),
            })
          : { args: manifest.drill.args as JsonObject };
      if ("missing" in made) {
        const problem = `no value for ${made.missing}: add drill: {args} to the manifest`;
        return { tool, trial: { ...NO_TRIAL, problem }, verdict: null };
      }
      const made_up = manifest.drill === undefined && fixture.known.size === 0;
      const asked = { manifest, args: made.args, upstream, made_up };
      const tried = await this.tryWith(asked);
      const back = tried.trial.found === "not shown" ? this.switchedBack(manifest) : undefined;
      if (back === undefined) return tried;
      // Something that is on already cannot be switched on: switch it off first.
      const off = await this.call(back, made.args);
      const again = off === null ? tried : await this.tryWith(asked);
      await off?.undo();
      return again;
    } finally {
      await fixture.undo();
    }
  }

  /** The tool that undoes this one, if each undoes the other. */
  private switchedBack({ tool, compensation }: ToolManifest): string | undefined {
    const other = this.app.core.rules().manifests.active(compensation!.tool);
    return other !== undefined && other.tool !== tool && other.compensation?.tool === tool
      ? other.tool
      : undefined;
  }

  private async tryWith({ manifest, args, upstream, made_up }: AskedTrial): Promise<TriedDraft> {
    const { tool } = manifest;
    const { manifests } = this.app.core.rules();
    const readers = this.offered.filter((one) => manifests.active(one.tool)?.effect === "read");
    const reads = readsFor(manifest, args, readers);
    const states: ServerState[] = [];
    let result: JsonValue | undefined;
    const look = async (run_id: string) => {
      states.push(await readState(reads, { args, result }, this.tools.reader, run_id));
    };
    let shown_by: StateRead[] = [];
    let isUseless = false;
    const trial = await tryDraft(this.app, { manifest, args, by: this.by }, this.tools, {
      beforeCall: async (run_id) => {
        await look(run_id);
        await look(run_id);
      },
      afterCall: async (run_id, made) => {
        result = made.result;
        await look(run_id);
      },
      afterUndo: async (run_id) => {
        await look(run_id);
        const [before, again, after, undone] = states as [ServerState, ServerState, ServerState, ServerState];
        const finding = judgeUndo(before, again, after, undone);
        if (finding.found === "not shown") return NOT_SHOWN;
        if (finding.found === "held") {
          shown_by = finding.shown_by;
          return null;
        }
        isUseless = finding.nothing_changed;
        return `${isUseless ? "the undo changed nothing" : "the state is not as before"}: ${finding.at.join(", ")}`;
      },
    });
    if (trial.found === "not tried") return { tool, trial, verdict: null };
    const isFailed = trial.found === "failed";
    if (isFailed && trial.problem === NOT_SHOWN)
      return { tool, trial: { found: "not shown", problem: NOT_SHOWN }, verdict: null };
    const day = new Date(this.app.core.env.now()).toISOString().slice(0, 10);
    const tried = `tried on ${upstream}, ${day}`;
    if (isFailed) {
      const found = isUseless || trial.problem.startsWith("the undo failed") ? "disproved" : "unsure";
      const note = `${tried}, and ${manifest.compensation!.tool} did not undo it: ${trial.problem}`;
      return { tool, trial, verdict: { tool, found, note } };
    }
    const note = `${tried}: undone, shown by ${[...new Set(shown_by.map((one) => one.tool))].join(", ")}`;
    const verification = verificationOf(manifest, shown_by, states[2]!, states[3]!);
    // Arguments with the id of something that is gone again could not be used twice.
    const adds = verification === null ? {} : { verification, ...(made_up ? { drill: { args } } : {}) };
    return { tool, trial, verdict: { tool, found: "held", note, adds } };
  }

  private word(): string {
    return `svc-drill-${this.app.core.env.uuid().slice(0, 8)}`;
  }

  /** Makes something for a tool that works on an existing thing. `undo` removes it again, if its tool has an undo. */
  private async fixtureFor(
    manifest: ToolManifest,
    { name }: OfferedTool,
  ): Promise<{ known: Map<string, JsonValue>; undo: () => Promise<void> }> {
    const known = new Map<string, JsonValue>();
    const parse = toolNameParser(this.offered.map((one) => one.name));
    const { object, act } = parse(name);
    const nothing = { known, undo: async () => {} };
    const usesResult = JSON.stringify(manifest.compensation?.args ?? null).includes('"$result');
    if (manifest.drill !== undefined || (act === "create" && usesResult)) return nothing;
    const maker = this.offered.find((one) => {
      const parsed = parse(one.name);
      return parsed.object === object && parsed.verb === "create" && one.tool !== manifest.tool;
    });
    const made = maker === undefined ? null : await this.make(maker);
    if (made !== null) learnValues(made.values, known);
    for (const one of await this.listed()) learnValues(one, known);
    return { known, undo: made?.undo ?? nothing.undo };
  }

  private async make(maker: OfferedTool) {
    const made = exampleArgs(maker.definition, { known: new Map(), word: this.word() });
    if ("missing" in made) return null;
    const called = await this.call(maker.tool, made.args);
    return called === null ? null : { values: [called.result ?? null, made.args], undo: called.undo };
  }

  private call(tool: string, args: JsonObject) {
    return makeUndoableCall(this.app, this.tools, { tool, args, by: this.by });
  }

  /** Answers of the reading tools that need no arguments. */
  private async listed(): Promise<JsonValue[]> {
    const { manifests } = this.app.core.rules();
    const readers = this.offered.filter(
      ({ tool, definition }) =>
        manifests.active(tool)?.effect === "read" && requiredOf(definition).length === 0,
    );
    const reads = readers.map(({ tool }): StateRead => ({ tool, args: {} }));
    const state = await readState(reads, { args: {}, result: undefined }, this.tools.reader);
    return [...state.values()].map(({ answer }) => answer);
  }
}

const NOT_SHOWN = "no reading tool shows what the call did";

/** Members that the undo restores from the read before the call. */
function changedBy({ compensation }: ToolManifest): string[] {
  const args = compensation?.args ?? {};
  return Object.entries(args as JsonObject).flatMap(([name, value]) =>
    typeof value === "string" && value.startsWith("$before") ? [name] : [],
  );
}

/** A read-back for the manifest, from a read that showed both the call and its undo; null if none can say it. */
function verificationOf(
  { before, verification }: ToolManifest,
  shown_by: readonly StateRead[],
  after: ServerState,
  undone: ServerState,
): JsonValue | null {
  if (verification !== null) return null;
  if (before !== undefined) return { tool: before.tool, args: before.args as JsonValue, expect: "$before" };
  for (const [key, { read, answer }] of undone) {
    if (!shown_by.includes(read) || Object.keys(read.args).length === 0) continue;
    const expect = changedMembers(after.get(key)?.answer ?? null, answer);
    if (expect !== null) return { tool: read.tool, args: read.args, expect };
  }
  return null;
}

/** Members of the answer that the undo changed, such as `exists: false`. Others can hold a made-up value. */
function changedMembers(was: JsonValue, is: JsonValue): JsonObject | null {
  if (is === null || typeof is !== "object" || Array.isArray(is)) return null;
  const { is_error } = is;
  if (is_error === true) return null;
  const old = was !== null && typeof was === "object" && !Array.isArray(was) ? was : {};
  const members = Object.entries(is).filter(
    ([name, value]) =>
      (value === null || typeof value === "boolean") && JSON.stringify(old[name]) !== JSON.stringify(value),
  );
  return members.length === 0 ? null : Object.fromEntries(members);
}
