/** The engine of the workspace record: what it sees, and what it puts back. */
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { playHistory, treeOf } from "../../../stress/prove/histories.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { ContentStore } from "./content-store.ts";
import type { CommandWrites, OtherWrites } from "./overlaps.ts";
import { findRecord } from "./record-file.ts";
import { createExclusionTest, isKeptOfGit, REBUILT_DIRECTORIES, SNAPSHOT_DEFAULTS } from "./record-scope.ts";
import { type RecordedEnd, WorkspaceRecorder } from "./recorder.ts";
import { type LeftPath, restoreRecord } from "./restore.ts";

/** A workspace with its recorder. */
function workspace(snapshot = SNAPSHOT_DEFAULTS) {
  const folder = tempDir("record");
  mkdirSync(join(folder, "work"));
  const root = realpathSync(join(folder, "work"));
  const setting = { root, service: join(folder, "svc"), folder: join(folder, "svc/record"), snapshot };
  mkdirSync(setting.service);
  const recorder = new WorkspaceRecorder(setting);
  const at = (path: string) => join(root, path);
  return {
    root,
    at,
    setting,
    recorder,
    put(path: string, text: string, mode?: number) {
      mkdirSync(join(at(path), ".."), { recursive: true });
      writeFileSync(at(path), text);
      if (mode !== undefined) chmodSync(at(path), mode);
    },
    text: (path: string) => readFileSync(at(path), "utf8"),
    run(work: () => unknown, how: { others?: Partial<OtherWrites>; does?: CommandWrites } = {}): RecordedEnd {
      recorder.begin("w");
      work();
      const others = { all: false, output: false, files: new Set<string>(), ...how.others };
      return recorder.end({ window: "w", run: "r", does: how.does ?? "write", others })!;
    },
    undo({ before }: RecordedEnd, skip: readonly string[] = []): LeftPath[] {
      const store = new ContentStore(setting.folder, false);
      return restoreRecord(store, findRecord(store, before.record.name.split("@")[0]!)!, {
        isSkipped: (path) => skip.includes(path),
        overwrite: false,
      });
    },
  };
}

describe("the difference of a command", () => {
  it("holds created, changed, deleted and renamed files, modes, links and directories", () => {
    const w = workspace();
    w.put("changed", "old");
    w.put("deleted", "gone soon");
    w.put("from", "moves");
    w.put("mode", "x", 0o644);
    mkdirSync(w.at("emptied"));
    const first = treeOf(w.root);
    const end = w.run(() => {
      w.put("new/created", "new");
      w.put("changed", "new");
      rmSync(w.at("deleted"));
      renameSync(w.at("from"), w.at("to"));
      chmodSync(w.at("mode"), 0o4755);
      symlinkSync("changed", w.at("link"));
      rmSync(w.at("emptied"), { recursive: true });
    });
    expect(end.summary).toEqual({
      created: ["new/created"],
      changed: ["changed"],
      deleted: ["deleted"],
      renamed: [{ from: "from", to: "to" }],
      modes: ["mode"],
      links: ["link"],
      directories: ["emptied", "new"],
    });
    expect(w.undo(end)).toEqual([]);
    expect(treeOf(w.root)).toEqual(first);
  });

  it("sees a second change in the same tick of the clock, with any times", () => {
    const w = workspace();
    w.put("a", "one");
    const { atime, mtime } = statSync(w.at("a"));
    const end = w.run(() => {
      w.put("a", "two");
      utimesSync(w.at("a"), atime, mtime);
    });
    expect(end.summary.changed).toEqual(["a"]);
    expect(w.undo(end)).toEqual([]);
    expect(w.text("a")).toBe("one");
  });

  it("keeps names that are not text", () => {
    const w = workspace();
    const name = Buffer.concat([Buffer.from(`${w.root}/`), Buffer.from([0x66, 0xff, 0xfe])]);
    writeFileSync(name, "old");
    const end = w.run(() => writeFileSync(name, "new"));
    expect(Object.keys(end.before.record.files)).toEqual(["f\\xff\\xfe"]);
    expect(w.undo(end)).toEqual([]);
    expect(readFileSync(name, "utf8")).toBe("old");
  });

  it("leaves out what a command rebuilds, unless git tracks a file there", () => {
    const isExcluded = createExclusionTest([...REBUILT_DIRECTORIES, "deep/cache", "gen-*"]);
    expect(["node_modules", "x/target", "deep/cache", "gen-1"].filter(isExcluded)).toHaveLength(4);
    expect(["src", "targets", "x/deep/cache"].filter(isExcluded)).toEqual([]);
    const w = workspace();
    w.put("node_modules/p/index.js", "1");
    w.put("src/a", "1");
    const end = w.run(() => {
      w.put("node_modules/p/index.js", "2");
      w.put("src/a", "2");
    });
    expect(Object.keys(end.before.record.files)).toEqual(["src/a"]);
    expect(end.before.record.left_out).toEqual(["node_modules"]);
  });

  it("holds of .git what says which commit is checked out", () => {
    const kept = [".git/HEAD", ".git/refs/heads/target/x", ".git/packed-refs", ".git/index", ".git/config"];
    expect([...kept, "sub/.git/logs/refs/stash"].filter((path) => isKeptOfGit(path) !== true)).toEqual([]);
    expect(
      [".git/objects", ".git/logs/HEAD", ".git/hooks"].filter((path) => isKeptOfGit(path) !== false),
    ).toEqual([]);
    expect(isKeptOfGit("src/.github/x")).toBeUndefined();
  });

  it("counts what a limit left out", () => {
    const w = workspace({ ...SNAPSHOT_DEFAULTS, max_file: 10 });
    w.put("large", "more than ten bytes");
    w.put("small", "a");
    const end = w.run(() => {
      w.put("large", "other than ten bytes");
      w.put("small", "b");
    });
    expect(end.lost).toEqual(["large"]);
    expect(end.before.whole).toBe(false);
    expect(w.undo(end)).toEqual([{ path: "large", error: "not recorded" }]);
    expect(w.text("small")).toBe("a");
  });

  it("counts files beyond the total, undoes those within it, and records again when there is room", () => {
    verifies("beyond.record.limits", "beyond.record.not-recorded");
    const w = workspace({ ...SNAPSHOT_DEFAULTS, max_total: 30 });
    w.put("a", "a".repeat(20));
    w.put("b", "b".repeat(8));
    w.put("c", "c".repeat(9));
    const end = w.run(() => {
      // Its new content has no place, and its old one is kept.
      w.put("a", "A".repeat(25));
      w.put("b", "B".repeat(8));
      w.put("c", "C".repeat(9));
    });
    expect(end.lost).toEqual(["c"]);
    expect(w.undo(end)).toEqual([{ path: "c", error: "not recorded" }]);
    expect([w.text("a"), w.text("b"), w.text("c")]).toEqual(["a".repeat(20), "b".repeat(8), "C".repeat(9)]);
    w.run(() => w.put("a", "A".repeat(25)));
    const beyond = w.run(() => w.put("a", "again".repeat(5)));
    expect(beyond.lost).toEqual(["a"]);
    expect(w.undo(beyond)).toEqual([{ path: "a", error: "not recorded" }]);
    rmSync(w.at("a"));
    const room = w.run(() => w.put("c", "other"));
    expect(room.lost).toEqual([]);
    expect(w.undo(room)).toEqual([]);
    expect(w.text("c")).toBe("C".repeat(9));
  });

  it("keeps a lowered total also for what an earlier process recorded", () => {
    verifies("beyond.record.limits");
    const w = workspace();
    w.put("a", "a".repeat(20));
    w.run(() => {});
    w.recorder.save();
    const snapshot = { ...SNAPSHOT_DEFAULTS, max_total: 10 };
    const later = new WorkspaceRecorder({ ...w.setting, snapshot });
    later.begin("w");
    w.put("a", "b");
    const others = { all: false, output: false, files: new Set<string>() };
    expect(later.end({ window: "w", run: "r", does: "write", others })!.lost).toEqual(["a"]);
  });

  it("renames a large file back, whose content is not recorded", () => {
    const w = workspace({ ...SNAPSHOT_DEFAULTS, max_file: 10 });
    w.put("large", "more than ten bytes");
    const end = w.run(() => renameSync(w.at("large"), w.at("moved")));
    expect(w.undo(end)).toEqual([]);
    expect(w.text("large")).toBe("more than ten bytes");
    expect(existsSync(w.at("moved"))).toBe(false);
  });

  it("stores equal contents once, readable for the user alone", () => {
    const w = workspace();
    for (const name of ["a", "b", "c"]) w.put(name, "the same");
    w.run(() => {});
    const store = new ContentStore(w.setting.folder, false);
    const objects = [...store.objects()];
    expect(objects).toHaveLength(1);
    expect(lstatSync(objects[0]!.path).mode & 0o777).toBe(0o600);
    expect(lstatSync(w.setting.folder).mode & 0o777).toBe(0o700);
    expect(readFileSync(objects[0]!.path, "latin1")).not.toContain("the same");
  });
});

describe("the undo of a command", () => {
  it("leaves alone what changed since, restores the rest, and names it", () => {
    const w = workspace();
    w.put("a", "1");
    w.put("b", "1");
    const end = w.run(() => {
      w.put("a", "2");
      w.put("b", "2");
    });
    w.put("b", "somebody's");
    expect(w.undo(end)).toEqual([{ path: "b", error: "conflict: changed since" }]);
    expect([w.text("a"), w.text("b")]).toEqual(["1", "somebody's"]);
  });

  it("does not undo what changed while another was writing", () => {
    const w = workspace();
    w.put("a", "1");
    const end = w.run(() => w.put("a", "2"), { others: { all: true } });
    expect(w.undo(end)).toEqual([{ path: "a", error: "conflict: changed while another was writing" }]);
    expect(w.text("a")).toBe("2");
  });

  it("undoes what a command changed where an edit or a build at the same time writes nothing", () => {
    const w = workspace();
    for (const path of ["a", "b", "dist/c"]) w.put(path, "1");
    const others = { output: true, files: new Set([w.at("b")]) };
    const end = w.run(() => ["a", "b", "dist/c"].map((path) => w.put(path, "2")), { others });
    const error = "conflict: changed while another was writing";
    expect(w.undo(end)).toEqual([
      { path: "b", error },
      { path: "dist/c", error },
    ]);
    expect(w.text("a")).toBe("1");
  });

  it("undoes of a build only its output", () => {
    const w = workspace();
    w.put("src/a.ts", "1");
    const end = w.run(
      () => {
        w.put("dist/a.js", "built");
        w.put("src/a.ts", "2");
      },
      { does: "build" },
    );
    expect(w.undo(end)).toEqual([{ path: "src/a.ts", error: "conflict: changed while another was writing" }]);
    expect([existsSync(w.at("dist/a.js")), w.text("src/a.ts")]).toEqual([false, "2"]);
  });

  it("never follows a link that took the place of a file or a directory", () => {
    const w = workspace();
    const outside = tempDir("outside");
    writeFileSync(join(outside, "f"), "2");
    w.put("d/f", "1");
    w.put("g", "1");
    const end = w.run(() => {
      w.put("d/f", "2");
      w.put("g", "2");
    });
    rmSync(w.at("d"), { recursive: true });
    symlinkSync(outside, w.at("d"));
    rmSync(w.at("g"));
    symlinkSync(join(outside, "f"), w.at("g"));
    const linked = "conflict: a link is in its place";
    expect(w.undo(end)).toEqual([
      { path: "d/f", error: linked },
      { path: "g", error: linked },
    ]);
    expect(readFileSync(join(outside, "f"), "utf8")).toBe("2");
  });

  it("leaves out skipped paths", () => {
    const w = workspace();
    w.put("a", "1");
    w.put("b", "1");
    const end = w.run(() => {
      w.put("a", "2");
      w.put("b", "2");
    });
    expect(w.undo(end, ["a"])).toEqual([{ path: "a", error: "left out by --skip" }]);
    expect([w.text("a"), w.text("b")]).toEqual(["2", "1"]);
  });

  it("brings back hard links, links and modes", () => {
    const w = workspace();
    w.put("a", "1");
    linkSync(w.at("a"), w.at("b"));
    w.put("c", "1");
    linkSync(w.at("c"), w.at("d"));
    symlinkSync("old", w.at("l"));
    mkdirSync(w.at("dir"), { mode: 0o750 });
    w.put("dir/f", "1", 0o600);
    const first = treeOf(w.root);
    const end = w.run(() => {
      w.put("a", "2");
      rmSync(w.at("d"));
      rmSync(w.at("l"));
      symlinkSync("new", w.at("l"));
      chmodSync(w.at("dir/f"), 0o4711);
      chmodSync(w.at("dir"), 0o500);
      linkSync(w.at("c"), w.at("another"));
    });
    expect(w.undo(end)).toEqual([]);
    expect(treeOf(w.root)).toEqual(first);
    expect(statSync(w.at("a")).ino).toBe(statSync(w.at("b")).ino);
    expect(statSync(w.at("c")).ino).toBe(statSync(w.at("d")).ino);
    expect(readlinkSync(w.at("l"))).toBe("old");
  });

  it("names a created directory that holds somebody's file", () => {
    const w = workspace();
    const end = w.run(() => w.put("made/a", "1"));
    w.put("made/somebody's", "1");
    expect(w.undo(end)).toEqual([
      { path: "made", error: "the directory contains other files, so it remains" },
    ]);
    expect(existsSync(w.at("made/a"))).toBe(false);
  });

  it("tells a content that was removed or damaged", () => {
    const w = workspace();
    w.put("a", "1");
    const end = w.run(() => w.put("a", "2"));
    for (const { path } of new ContentStore(w.setting.folder, false).objects())
      writeFileSync(path, "damaged");
    expect(w.undo(end)).toEqual([{ path: "a", error: "its recorded content is missing or damaged" }]);
    expect(w.text("a")).toBe("2");
  });
});

describe("random histories", () => {
  it("end in the first state, or differ only where the other writer wrote", () => {
    verifies("beyond.record.histories");
    const problems: string[] = [];
    const seeds = Array.from({ length: 60 }, (_, n) => n + 1);
    // In the last one, the other writer gives a file a second name while an edit runs.
    for (const seed of [...seeds, 40_573]) problems.push(...playHistory(seed, tempDir("history")));
    expect(problems).toEqual([]);
  });
});
