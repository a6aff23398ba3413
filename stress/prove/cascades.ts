/**
 * Random histories of five agents on shared documents. One agent's run is undone with some or all of the calls that
 * others built on it. Afterwards each document equals the history without those calls, or the report names a call on it
 * that was not undone. With all dependents, no other writer and no failing undo, nothing may be left.
 */
import { findDependents } from "../../src/rollback/cascade/dependents.ts";
import { type ChosenStep, executeCascade } from "../../src/rollback/cascade/roll-back-with.ts";
import type { TreeReport } from "../../src/rollback/plan/report.ts";
import type { CompensationCall } from "../../src/rollback/ports.ts";
import { principal, testEngine } from "../../test/support/engine.ts";

const MANIFESTS = `
- {tool: doc.get, effect: read, permission: p, risk: {source: docs}}
- tool: doc.put
  effect: compensable
  permission: p
  before: {tool: doc.get, args: {id: $args.id}}
  compensation: {tool: doc.restore, args: {docs: [{id: $args.id, text: $before.text}]}, kind: inverse}
- tool: doc.pair
  effect: compensable
  permission: p
  before: {tool: doc.get, args: [{id: $args.one}, {id: $args.two}]}
  compensation:
    tool: doc.restore
    args: {docs: [{id: $args.one, text: "$before[0].text"}, {id: $args.two, text: "$before[1].text"}]}
    kind: inverse
- tool: doc.use
  effect: compensable
  permission: p
  requires: [doc.put]
  compensation: {tool: doc.unuse, args: {name: $args.name}}
- {tool: note.add, effect: compensable, permission: p, compensation: {tool: note.drop, args: {name: $args.name}}}
`;
const POLICY = `version: 1
flows: [{id: f, after: {source: none}, then: {sink: none}, carries: true, within: 24h}]
`;
const AGENTS = 5;
const DOCS = ["a", "b", "c", "d"];
const who = principal("agent");

type Random = (below: number) => number;
type Engine = ReturnType<typeof testEngine>;

function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** The effect of one call, as the history records it. `run_id` is absent for another writer, who isn't an agent. */
interface Deed {
  run_id?: string;
  step?: number;
  token: string;
  /** Documents that it appended its token to. */
  docs: string[];
  /** Its effects outside the documents. */
  left?: string;
  /** Tokens that it took from its run's earlier reads. */
  took: string[];
}

/** Documents, notes, and everything that happened to them. */
class World {
  readonly docs = new Map(DOCS.map((id) => [id, ""]));
  readonly left = new Set<string>();
  readonly deeds: Deed[] = [];
  fails: (call: CompensationCall) => boolean = () => false;

  read = (id: string) => ({ text: this.docs.get(id) ?? "" });
  reader = async ({ arguments: args }: { arguments: unknown }) => this.read((args as { id: string }).id);
  compensator = async (call: CompensationCall): Promise<void> => {
    if (this.fails(call)) throw new Error("refused");
    const { docs = [], name } = call.args as { docs?: { id: string; text: string }[]; name?: string };
    for (const { id, text } of docs) this.docs.set(id, text);
    if (name !== undefined) this.left.delete(name);
  };
  happen(deed: Deed): void {
    this.deeds.push(deed);
    for (const id of deed.docs) this.docs.set(id, `${this.docs.get(id)} ${deed.token}`);
    if (deed.left !== undefined) this.left.add(deed.left);
  }
}

const keyOf = (run_id: string, step: number): string => `${run_id}/${step}`;

/** One agent's turn. */
async function play(engine: Engine, world: World, random: Random, n: number): Promise<void> {
  const run_id = `r${random(AGENTS)}`;
  const token = `id-${10_000 + n}`;
  const id = DOCS[random(DOCS.length)]!;
  const two = DOCS[(DOCS.indexOf(id) + 1) % DOCS.length]!;
  const call = async (
    tool: string,
    args: object,
    deed: Pick<Deed, "docs" | "left" | "took">,
    result: object,
  ) => {
    const { step } = (await engine.intent(who, run_id, tool, args as never)) as { step?: number };
    if (step === undefined) return;
    const states = (): object[] => deed.docs.map((one) => world.read(one));
    const before = states();
    world.happen({ run_id, step, token, ...deed });
    const after = states();
    const one = <T>(list: T[]) => (tool === "doc.pair" ? list : list[0]);
    const seen = deed.docs.length === 0 ? {} : { before: one(before), after: one(after) };
    await engine.outcome(who, run_id, step, {
      status: "succeeded",
      result: result as never,
      ...(seen as object),
    });
  };
  const nothing = { docs: [], took: [] };
  const what = random(10);
  if (what < 4) await call("doc.put", { id, token }, { docs: [id], took: [] }, {});
  else if (what < 5) await call("doc.pair", { one: id, two, token }, { docs: [id, two], took: [] }, {});
  else if (what < 7) await call("doc.get", { id }, nothing, world.read(id));
  else if (what < 8) await call("doc.use", { name: token }, { ...nothing, left: token }, {});
  else if (what < 9) {
    const took = world.docs.get(id)!.split(" ").filter(Boolean);
    await call("doc.get", { id }, nothing, world.read(id));
    await call("note.add", { name: token, text: took.join(" ") }, { docs: [], left: token, took }, {});
  } else if (random(4) === 0) world.happen({ token, docs: [id], took: [] });
}

/** Plays one history and its rollback, and returns the faults. */
export async function playCascade(seed: number): Promise<string[]> {
  const random = randomFrom(seed);
  const engine = testEngine({ manifests: MANIFESTS, policy: POLICY });
  const world = new World();
  for (let i = 0; i < AGENTS; i++) await engine.open(who, { run_id: `r${i}`, permissions: ["p"] });
  const turns = 6 + random(14);
  for (let n = 0; n < turns; n++) await play(engine, world, random, n);
  const run_id = `r${random(AGENTS)}`;
  const own = world.deeds.filter((deed) => deed.run_id === run_id);
  const roots = own
    .filter(({ docs, left }) => docs.length > 0 || left !== undefined)
    .map(({ step }) => ({ run_id, step: step! }));
  const { dependents } = await findDependents(engine.store, { roots, whole: [run_id] }, engine.env.now());
  const undoable = dependents.filter(({ kind }) => kind === "compensate");
  const all = random(2) === 0;
  const chosen = all ? undoable : undoable.filter(() => random(2) === 0);
  const failing = random(3) === 0;
  world.fails = () => failing && random(4) === 0;
  const report = await executeCascade(engine.core, run_id, {
    actor: "operator",
    compensator: world.compensator,
    reader: world.reader,
    retries: 1,
    backoff_ms: 1,
    with: chosen.map(({ run_id: run, step }) => ({ run_id: run, step })),
  });
  const outside = world.deeds.some((deed) => deed.run_id === undefined);
  return [
    ...missedNotes(world, roots, dependents),
    ...wrongDocs(world, run_id, chosen, report),
    ...(all && !outside && !failing && !report.complete ? [`incomplete: ${JSON.stringify(report)}`] : []),
  ].map((problem) => `seed ${seed}: ${problem}`);
}

/** Notes that hold a token of the run's own calls, and that the preview does not list. */
function missedNotes(world: World, roots: ChosenStep[], dependents: readonly ChosenStep[]): string[] {
  const undone = new Set(roots.map(({ run_id, step }) => keyOf(run_id, step)));
  const tokens = new Set(
    world.deeds
      .filter(({ run_id, step }) => undone.has(keyOf(run_id ?? "", step ?? -1)))
      .map(({ token }) => token),
  );
  const listed = new Set(dependents.map(({ run_id, step }) => keyOf(run_id, step)));
  return world.deeds.flatMap(({ run_id = "", step = -1, took }) => {
    const key = keyOf(run_id, step);
    const isMissed = took.some((token) => tokens.has(token)) && !undone.has(key) && !listed.has(key);
    return isMissed ? [`${key} took a value and is not listed`] : [];
  });
}

/** What differs from the history without the undone calls, although the report says that they are undone. */
function wrongDocs(
  world: World,
  run_id: string,
  chosen: readonly ChosenStep[],
  report: TreeReport,
): string[] {
  const done = new Set(report.compensated.map((step) => keyOf(run_id, step)));
  for (const other of report.with ?? [])
    for (const step of other.compensated) done.add(keyOf(other.run_id, step));
  const meant = new Set(chosen.map((one) => keyOf(one.run_id, one.step)));
  const isMeant = (deed: Deed): boolean =>
    deed.run_id === run_id || meant.has(keyOf(deed.run_id ?? "", deed.step ?? -1));
  const stays = world.deeds.filter((deed) => !isMeant(deed));
  const isNamed = (touches: (deed: Deed) => boolean): boolean =>
    world.deeds.some((deed) => isMeant(deed) && touches(deed) && !done.has(keyOf(deed.run_id!, deed.step!)));
  const problems: string[] = [];
  for (const id of DOCS) {
    const expected = stays
      .filter(({ docs }) => docs.includes(id))
      .map(({ token }) => ` ${token}`)
      .join("");
    if (world.docs.get(id) !== expected && !isNamed(({ docs }) => docs.includes(id)))
      problems.push(`document ${id} is "${world.docs.get(id)}", not "${expected}"`);
  }
  const kept = new Set(stays.flatMap(({ left }) => left ?? []));
  for (const deed of world.deeds)
    if (
      deed.left !== undefined &&
      world.left.has(deed.left) !== kept.has(deed.left) &&
      !isNamed((one) => one === deed)
    )
      problems.push(`${deed.left} is ${world.left.has(deed.left) ? "there" : "gone"}`);
  return problems;
}
