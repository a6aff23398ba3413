/**
 * Random histories of a workspace: an agent's edits and commands, and another writer who also writes while commands run.
 * Each history is undone newest first. Afterwards the workspace equals its first state, or differs only where the other
 * writer wrote, and the report names what the agent changed there.
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
import { dirname, join } from "node:path";
import { ContentStore } from "../../src/hook/record/content-store.ts";
import { findRecord } from "../../src/hook/record/record-file.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import { WorkspaceRecorder } from "../../src/hook/record/recorder.ts";
import { restoreRecord } from "../../src/hook/record/restore.ts";
import {
  type FileSnapshot,
  missingDirectories,
  restoreFiles,
  snapshotFiles,
} from "../../src/hook/workspace/file-snapshot.ts";

const FOLDERS = ["a", "a/b", "c", "c/d/e"];
const NAMES = ["x", "y", "z.txt", "ümlaut", "-n"];
const MODES = [0o644, 0o755, 0o600, 0o4755, 0o444];
const MAX_STEPS = 7;

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

interface EditStep {
  kind: "edit";
  path: string;
  before: FileSnapshot;
  after: string;
}
type Step = EditStep | { kind: "command"; record: string };

/** The differences that the undo left without a reason, as text. Empty if the history holds. */
export function playHistory(seed: number, folder: string): string[] {
  const random = randomFrom(seed);
  mkdirSync(join(folder, "work"), { recursive: true });
  const root = realpathSync(join(folder, "work"));
  const records = join(folder, "record");
  for (let n = 0; n < 6; n++) act(random, root);
  const first = treeOf(root);
  const recorder = new WorkspaceRecorder({
    root,
    service: folder,
    folder: records,
    snapshot: SNAPSHOT_DEFAULTS,
  });
  const foreign = new Set<string>();
  const other = () => {
    const before = treeOf(root);
    act(random, root);
    for (const path of differing(before, treeOf(root)))
      for (const name of namesOf(root, path)) foreign.add(name);
  };
  const steps: Step[] = [];
  for (let n = 1 + random(MAX_STEPS); n > 0; n--) {
    if (random(4) === 0) other();
    const step = random(3) === 0 ? edit(random, root) : command(random, recorder, root, other);
    if (step !== null) steps.push(step);
  }
  if (random(3) === 0) other();
  const said = new Set<string>();
  const store = new ContentStore(records, false);
  for (const step of steps.reverse()) for (const path of undo(step, store, root)) said.add(path);
  const left = differing(first, treeOf(root)).filter((path) => !touches(path, foreign));
  return left.map((path) => `seed ${seed}: ${path} differs, and nobody else wrote it`);
}

/** All names of the file at this path. */
function namesOf(root: string, path: string): string[] {
  const found = lstatSync(join(root, path), { throwIfNoEntry: false });
  if (!found?.isFile() || found.nlink < 2) return [path];
  return [...treeOf(root).keys()].filter((name) => lstatSync(join(root, name)).ino === found.ino);
}

/** Whether the other writer wrote this path, above it or below it. */
function touches(path: string, foreign: ReadonlySet<string>): boolean {
  for (const one of foreign)
    if (one === path || one.startsWith(`${path}/`) || path.startsWith(`${one}/`)) return true;
  return false;
}

function edit(random: Random, root: string): EditStep | null {
  const path = join(root, pick(random, FOLDERS), pick(random, NAMES));
  if (reachesLink(root, path)) return null;
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) return null;
  try {
    const paths = [...missingDirectories(path), path];
    const before = snapshotFiles(paths, true);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `edit ${random(1_000)}`);
    return { kind: "edit", path, before, after: JSON.stringify(snapshotFiles(paths, false).state) };
  } catch {
    return null;
  }
}

function reachesLink(root: string, path: string): boolean {
  for (let at = path; at.length > root.length; at = dirname(at)) {
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (found !== undefined && !found.isDirectory() && at !== path) return true;
    if (found?.isSymbolicLink()) return true;
  }
  return false;
}

function command(random: Random, recorder: WorkspaceRecorder, root: string, other: () => void): Step {
  recorder.begin("w");
  for (let n = random(5); n >= 0; n--) {
    act(random, root);
    if (random(6) === 0) other();
  }
  const end = recorder.end({ window: "w", run: "r", overlapped: false, build: false })!;
  return { kind: "command", record: end.before.record.name.split("@")[0]! };
}

function undo(step: Step, store: ContentStore, root: string): string[] {
  if (step.kind === "command")
    return restoreRecord(store, findRecord(store, step.record)!, {
      isSkipped: () => false,
      overwrite: false,
    }).map(({ path }) => join(root, path));
  try {
    const paths = Object.keys(step.before.state);
    if (JSON.stringify(snapshotFiles(paths, false).state) !== step.after) return [step.path];
    restoreFiles(step.before);
    return [];
  } catch {
    return [step.path];
  }
}

/** One change of any kind. A change that is not possible is left out. */
function act(random: Random, root: string): void {
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
  try {
    mkdirSync(dirname(path), { recursive: true });
    pick(random, acts)();
  } catch {
    // Not possible in this state.
  }
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
