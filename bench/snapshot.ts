/** The record of a workspace: how long it takes when nothing changed, and the first time. */
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OverlappingCall } from "../src/hook/record/overlaps.ts";
import { SNAPSHOT_DEFAULTS } from "../src/hook/record/record-scope.ts";
import { WorkspaceRecorder } from "../src/hook/record/recorder.ts";
import type { BenchOptions } from "./main.ts";
import { median, type Row } from "./report.ts";

const FILES_A_FOLDER = 50;
const MEAN_BYTES = 3_000;

interface SizeGoal {
  files: number;
  unchanged_ms: number;
  /** Undefined: no goal for the first record. */
  first_ms?: number;
}

const SIZES: readonly SizeGoal[] = [
  { files: 100, unchanged_ms: 30 },
  { files: 10_000, unchanged_ms: 30, first_ms: 3_000 },
  { files: 100_000, unchanged_ms: 250 },
];

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const rows: Row[] = [];
  for (const size of SIZES) rows.push(...(await measured(size, rounds)));
  return rows;
}

/** Until the threads that help have started. */
const SETTLE_MS = 1_500;

async function measured({ files, unchanged_ms, first_ms }: SizeGoal, rounds: number): Promise<Row[]> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-snapshot-")));
  try {
    const root = join(folder, "work");
    fill(root, files);
    const recorder = new WorkspaceRecorder({
      root,
      service: join(folder, "svc"),
      folder: join(folder, "svc/record"),
      snapshot: SNAPSHOT_DEFAULTS,
    });
    const first = timed(() => recorder.warm());
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const { others } = new OverlappingCall([], { root, does: "write" });
    const times: number[] = [];
    for (let n = 0; n < Math.max(rounds, 5); n++) {
      times.push(timed(() => recorder.begin("w")));
      recorder.end({ window: "w", run: "r", others, does: "write" });
    }
    const name = `${files.toLocaleString("en")} files`;
    const paths = pathsBelow(root);
    const looks = Array.from({ length: 5 }, () =>
      timed(() => {
        for (const path of paths) lstatSync(path);
      }),
    );
    return [
      // What the system itself needs on this machine at this moment, in one thread.
      row(`${name}, one look at each`, median(looks), undefined),
      row(`${name}, unchanged`, median(times), unchanged_ms),
      row(`${name}, first record`, first, first_ms),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function row(what: string, value: number, goal_ms: number | undefined): Row {
  return {
    suite: "snapshot",
    what,
    value,
    unit: " ms",
    goal: goal_ms === undefined ? null : { at_most: goal_ms },
  };
}

const pathsBelow = (root: string): string[] =>
  readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
    const path = join(root, entry.name);
    return entry.isDirectory() ? pathsBelow(path) : [path];
  });

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}

function fill(root: string, files: number): void {
  for (let n = 0; n < files; n++) {
    const folder = join(
      root,
      `d${Math.floor(n / FILES_A_FOLDER / 20)}`,
      `e${Math.floor(n / FILES_A_FOLDER)}`,
    );
    if (n % FILES_A_FOLDER === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `f${n}.ts`), `${n} `.repeat((((n * 7_919) % 200) / 100) * (MEAN_BYTES / 6)));
  }
}
