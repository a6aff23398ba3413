/**
 * Random histories of a workspace: an agent's edits, commands and builds, several of them at the same time, and another
 * writer who also writes while they run. Each history is undone newest first. Afterwards the workspace equals its first
 * state. A path that differs is as the other writer left it, or the report names it.
 */
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { ContentStore } from "../../src/hook/record/content-store.ts";
import { closeEdit, type EditWindow, editedFiles, openEdit } from "../../src/hook/record/edit-record.ts";
import { type CallWrites, OverlappingCall } from "../../src/hook/record/overlaps.ts";
import { findRecord } from "../../src/hook/record/record-file.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import { WorkspaceRecorder } from "../../src/hook/record/recorder.ts";
import { restoreRecord } from "../../src/hook/record/restore.ts";
import { missingDirectories } from "../../src/hook/workspace/missing-directories.ts";

const FOLDERS = ["a", "a/b", "c", "c/d/e", "dist"];
const NAMES = ["x", "y", "z.txt", "ümlaut", "-n"];
const MODES = [0o644, 0o755, 0o600, 0o4755, 0o444];
const MAX_EVENTS = 24;
const MAX_AT_ONCE = 3;

type Random = (below: number) => number;

/** A small generator, so that a history is the same on every machine (mulberry32). */
function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)]!;

/** A call under way. `act` changes something that its class may write. */
interface RunningCall {
  overlap: OverlappingCall;
  act(): void;
  /** Ends it. Returns the id of its record. */
  end(): string;
}

interface History {
  random: Random;
  root: string;
  /** Directory of the service and of its records. */
  folder: string;
  recorder: WorkspaceRecorder;
  running: RunningCall[];
  /** States in which the other writer left each path that it changed. */
  foreign: Map<string, Set<string | undefined>>;
}

/** What differs without a reason, as text. Empty if the history holds. */
export function playHistory(seed: number, folder: string): string[] {
  const random = randomFrom(seed);
  mkdirSync(join(folder, "work"), { recursive: true });
  const root = realpathSync(join(folder, "work"));
  for (let n = 0; n < 6; n++) change(random, root);
  const first = treeOf(root);
  const records = join(folder, "record");
  const recorder = new WorkspaceRecorder({
    root,
    service: folder,
    folder: records,
    snapshot: SNAPSHOT_DEFAULTS,
  });
  const history: History = { random, root, folder, recorder, running: [], foreign: new Map() };
  const steps: (() => string)[] = [];
  for (let n = 2 + random(MAX_EVENTS); n > 0; n--) advance(history, steps);
  for (const call of history.running) call.end();
  if (random(3) === 0) otherWrites(history);
  const store = new ContentStore(records, false);
  const said = new Set<string>();
  for (const record of steps.reverse())
    for (const { path } of restoreRecord(store, findRecord(store, record())!, CHOICE)) said.add(path);
  const last = treeOf(root);
  return differing(first, last)
    .filter((path) => !history.foreign.get(path)?.has(last.get(path)) && !isSaid(path, said))
    .map((path) => `seed ${seed}: ${path} differs without a reason`);
}

const CHOICE = { isSkipped: () => false, overwrite: false };

/** A path is explained by its own line, and by one on a directory above or below it. */
function isSaid(path: string, said: ReadonlySet<string>): boolean {
  for (const one of said)
    if (one === path || one.startsWith(`${path}/`) || path.startsWith(`${one}/`)) return true;
  return false;
}

/** One event: a call begins, acts or ends, or the other writer writes. */
function advance(history: History, steps: (() => string)[]): void {
  const { random, running } = history;
  const kind = random(8);
  if (kind === 0) otherWrites(history);
  else if (running.length === 0 || (kind < 3 && running.length < MAX_AT_ONCE)) {
    const call = begin(history);
    if (call === null) return;
    let ended: string | undefined;
    const once = () => (ended ??= call.end());
    running.push({ ...call, end: once });
    steps.push(once);
  } else if (kind < 6) pick(random, running).act();
  else running.splice(random(running.length), 1)[0]!.end();
}

function begin(history: History): RunningCall | null {
  const { random } = history;
  const kind = random(3);
  return kind === 0 ? beginEdit(history) : beginCommand(history, kind === 1);
}

function beginCommand({ random, root, recorder, running }: History, build: boolean): RunningCall {
  const window = `w${random(1_000_000_000)}`;
  recorder.begin(window);
  const does = build ? "build" : "write";
  const overlap = overlapOf(running, { root, does });
  return {
    overlap,
    act: () => (build ? writeOutput(random, root) : change(random, root)),
    end: () => idOf(recorder.end({ window, run: "r", others: overlap.others, does })!),
  };
}

/** A build writes its output. */
function writeOutput(random: Random, root: string): void {
  const path = join(root, "dist", pick(random, NAMES));
  attempt(() => {
    mkdirSync(dirname(path), { recursive: true });
    if (random(4) === 0) rmSync(path, { force: true, recursive: true });
    else writeFileSync(path, `built ${random(50)}`);
  });
}

function beginEdit({ random, root, folder, running }: History): RunningCall | null {
  const path = join(root, pick(random, FOLDERS), pick(random, NAMES));
  let window: EditWindow;
  try {
    window = openEdit(folder, { root, files: [...missingDirectories(path), path], max_file: MAX_FILE });
  } catch {
    return null;
  }
  const overlap = overlapOf(running, { files: editedFiles(window) });
  const isOwn = (bytes: Buffer | null) => bytes?.toString().startsWith("edit ") === true;
  return {
    overlap,
    act: () =>
      attempt(() => {
        // Only a file that the call names: a link may lead to another one by now.
        if (editedFiles(window).includes(join(realpathSync(dirname(path)), basename(path))))
          writeNamed(random, root, path);
      }),
    end: () =>
      idOf(closeEdit(folder, window, { run: "r", max_file: MAX_FILE, others: overlap.others, isOwn })),
  };
}

const MAX_FILE = 1_000_000;

function writeNamed(random: Random, root: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  if (!`${realpathSync(dirname(path))}/`.startsWith(`${root}/`)) return;
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(path);
  writeFileSync(path, `edit ${random(1_000)}`);
}

const overlapOf = (running: readonly RunningCall[], writes: CallWrites): OverlappingCall =>
  new OverlappingCall(
    running.map(({ overlap }) => overlap),
    writes,
  );

const idOf = (end: { before: { record: { name: string } } }): string => end.before.record.name.split("@")[0]!;

function otherWrites({ random, root, foreign }: History): void {
  const before = treeOf(root);
  change(random, root);
  const after = treeOf(root);
  for (const path of differing(before, after))
    foreign.set(path, (foreign.get(path) ?? new Set()).add(after.get(path)));
}

/** One change of any kind. */
function change(random: Random, root: string): void {
  const path = join(root, pick(random, FOLDERS), pick(random, NAMES));
  const target = join(root, pick(random, FOLDERS), pick(random, NAMES));
  const acts: (() => void)[] = [
    () => writeFileSync(path, `text ${random(50)}`),
    () => writeFileSync(path, `more ${random(50)}`, { flag: "a" }),
    () => rmSync(path, { force: true, recursive: random(2) === 0 }),
    () => renameSync(path, target),
    () => chmodSync(path, pick(random, MODES)),
    () => symlinkSync(pick(random, NAMES), path),
    () => linkSync(path, target),
    () => mkdirSync(path),
    () => rmSync(dirname(path), { recursive: true, force: true }),
    () => renameSync(dirname(path), target),
    () => chmodSync(dirname(path), pick(random, [0o755, 0o700, 0o500])),
    () => {
      writeFileSync(`${target}.new`, existsSync(path) ? readFileSync(path) : "new");
      renameSync(`${target}.new`, target);
    },
  ];
  attempt(() => {
    mkdirSync(dirname(path), { recursive: true });
    pick(random, acts)();
  });
}

/** A change that is not possible in this state is left out. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {}
}

/** Every path with everything that an undo has to bring back. */
export function treeOf(root: string, path = ""): Map<string, string> {
  const tree = new Map<string, string>();
  const at = (name: string) => (path === "" ? name : `${path}/${name}`);
  for (const name of readdirSync(join(root, path))) {
    const full = join(root, at(name));
    const found = lstatSync(full);
    const mode = (found.mode & 0o7777).toString(8);
    if (found.isSymbolicLink()) tree.set(at(name), `link ${readlinkSync(full)}`);
    else if (found.isDirectory()) {
      tree.set(at(name), `directory ${mode}`);
      for (const [inner, state] of treeOf(root, at(name))) tree.set(inner, state);
    } else tree.set(at(name), `file ${mode} ${readFileSync(full, "latin1")}`);
  }
  return tree;
}

function differing(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] {
  return [...new Set([...a.keys(), ...b.keys()])].filter((path) => a.get(path) !== b.get(path));
}
