/** The index with helper threads finds what it finds alone. */
import {
  chmodSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { until } from "../../../test/support/until.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { createExclusionTest, SNAPSHOT_DEFAULTS } from "./record-scope.ts";
import { StatPool } from "./stat-pool.ts";
import { type FileEntry, WorkspaceIndex } from "./workspace-index.ts";

const NAMES = Array.from({ length: 40 }, (_, n) => `d${n % 4}/${n}.txt`);

/** An index with helpers, and the paths that it read. */
function indexed() {
  const root = realpathSync(tempDir("helpers"));
  for (const name of NAMES) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), `text of ${name}`);
  }
  const read: string[] = [];
  const helpers = new StatPool<FileEntry>({ least: 1, threads: 3 });
  const index = new WorkspaceIndex(
    {
      ...SNAPSHOT_DEFAULTS,
      root,
      never: [],
      isExcluded: createExclusionTest([]),
      keep: (path, bytes) => {
        read.push(path);
        return bytes.toString();
      },
      helpers,
    },
    { changing: () => {}, lost: () => {} },
  );
  return {
    at: (path: string) => join(root, path),
    index,
    helpers,
    /** The paths that a refresh reads. */
    refresh(): string[] {
      read.length = 0;
      index.refresh(false);
      return [...read].sort();
    },
  };
}

async function ready() {
  const made = indexed();
  made.refresh();
  // Files are read again until they are older than the clock's tick.
  await until(() => made.refresh().length === 0, "the index is at rest");
  await until(() => {
    const isHelped = made.helpers.begin();
    if (isHelped) made.helpers.differing();
    return isHelped;
  }, "the helpers take part");
  return made;
}

it("finds a file that was changed in place, with its size and time of change as before", async () => {
  verifies("beyond.record.difference");
  const s = await ready();
  expect(s.refresh()).toEqual([]);
  for (const name of NAMES) {
    const { atime, mtime } = statSync(s.at(name));
    writeFileSync(s.at(name), `TEXT OF ${name}`);
    utimesSync(s.at(name), atime, mtime);
  }
  expect(s.refresh()).toEqual([...NAMES].sort());
  for (const name of NAMES) expect(s.index.stateOf(name)).toMatchObject({ hash: `TEXT OF ${name}` });
  s.helpers.stop();
});

it("follows files that come, go, move and become something else", async () => {
  verifies("beyond.record.difference");
  const s = await ready();
  for (let round = 0; round < 3; round++) {
    rmSync(s.at(NAMES[round]!));
    mkdirSync(s.at(NAMES[round]!));
    renameSync(s.at(NAMES[round + 4]!), s.at(`moved${round}`));
    rmSync(s.at(NAMES[round + 8]!));
    symlinkSync("elsewhere", s.at(NAMES[round + 8]!));
    chmodSync(s.at(NAMES[round + 12]!), 0o600);
    writeFileSync(s.at(`d1/new${round}`), "new");
    s.refresh();
    expect(s.index.stateOf(NAMES[round]!)).toMatchObject({ kind: "directory" });
    expect(s.index.stateOf(NAMES[round + 4]!)).toBeNull();
    expect(s.index.stateOf(`moved${round}`)).toMatchObject({ hash: `text of ${NAMES[round + 4]}` });
    expect(s.index.stateOf(NAMES[round + 8]!)).toMatchObject({ kind: "link", target: "elsewhere" });
    expect(s.index.stateOf(NAMES[round + 12]!)).toMatchObject({ mode: 0o600 });
    expect(s.index.stateOf(`d1/new${round}`)).toMatchObject({ hash: "new" });
  }
  renameSync(s.at("d1"), s.at("d9"));
  s.refresh();
  expect(s.index.stateOf("d1/new0")).toBeNull();
  writeFileSync(s.at("d9/new0"), "newer");
  s.refresh();
  expect(s.index.stateOf("d9/new0")).toMatchObject({ hash: "newer" });
  s.helpers.stop();
});

it("looks at everything itself once the helpers are gone", async () => {
  verifies("beyond.record.difference");
  const s = await ready();
  s.helpers.stop();
  for (const name of NAMES) writeFileSync(s.at(name), "other");
  expect(s.refresh()).toEqual([...NAMES].sort());
});
