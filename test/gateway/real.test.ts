/** The example in front of servers that nobody here wrote. */
import {
  chmodSync,
  cpSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openService } from "../../src/service/service.ts";
import { type RunningGateway, startHttpGateway } from "../../src/service/start/gateway.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { type AnyResult, ask, call, connectTo, toolNames } from "./support/gateway.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
let running: RunningGateway;
let folder: string;
let workspace: string;

beforeAll(async () => {
  // The unchanged example, two directories below the modules as in the repository.
  const root = tempDir("real");
  folder = join(root, "examples", "gateway");
  cpSync(join(ROOT, "examples", "gateway"), folder, {
    recursive: true,
    filter: (path) => !/keys\.json|\/(?:data|workspace)$/.test(path),
  });
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  workspace = join(folder, "workspace");
  mkdirSync(workspace);
  const keys = [
    { name: "my-agent", role: "agent", max_permissions: ["files.*", "memory.*", "everything.use"] },
    { name: "me", role: "admin" },
  ].map((entry) => ({ ...entry, key_sha256: sha256Hex(entry.name) }));
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
  const settings = loadSettings({
    flags: { port: "0" },
    env: { WORKSPACE: join(folder, "workspace") },
    cwd: folder,
  });
  const log = createLogger({ level: "error" }, { sink: lineSink(() => {}) });
  running = await startHttpGateway(await openService(settings, systemEnv, { log }));
});
afterAll(() => running.stop());

const agent = (run: string, mode: "legacy" | "modern" = "legacy") =>
  connectTo(running.url, "my-agent", { mode, headers: { "svc-run-id": run } });
const admin = () => connectTo(running.url, "me", { path: "/operator/mcp" });

/** Everything under a folder: files with their bytes, links with where they lead. */
function tree(root: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const held = entry.isDirectory()
        ? "a folder"
        : entry.isSymbolicLink()
          ? `-> ${readlinkSync(path)}`
          : readFileSync(path).toString("base64");
      return [relative(root, path), held];
    }),
  );
}

describe("the filesystem server", () => {
  it.each(["legacy", "modern"] as const)(
    "a file written, edited and moved is rolled back to the byte (%s)",
    async (mode) => {
      const run = `files-${mode}`;
      writeFileSync(join(workspace, "notes.txt"), "first line\nsecond line \u00fc\nno newline at the end");
      mkdirSync(join(workspace, "inner"), { recursive: true });
      writeFileSync(join(workspace, "inner", "data.bin"), Buffer.from([0, 255, 13, 10, 7]));
      const before = tree(workspace);
      const client = await agent(run, mode);
      const path = (...parts: string[]) => join(workspace, ...parts);

      for (const [tool, args] of [
        ["files.write_file", { path: path("draft.txt"), content: "a draft\n" }],
        [
          "files.edit_file",
          { path: path("notes.txt"), edits: [{ oldText: "second line", newText: "another line" }] },
        ],
        ["files.edit_file", { path: path("draft.txt"), edits: [{ oldText: "draft", newText: "letter" }] }],
        ["files.move_file", { source: path("draft.txt"), destination: path("inner", "letter.txt") }],
        ["files.move_file", { source: path("inner", "data.bin"), destination: path("data.bin") }],
        ["files.read_text_file", { path: path("inner", "letter.txt") }],
      ] as const) {
        const result = await call(client, tool, args);
        expect([tool, result.isError, result._meta["svc/decision"]]).toEqual([tool, undefined, "allow"]);
      }
      expect(tree(workspace)).not.toEqual(before);
      expect(readFileSync(path("inner", "letter.txt"), "utf8")).toBe("a letter\n");

      const operator = await admin();
      const plan = await call(operator, "svc.execute_rollback", { run_id: run });
      expect(plan.structuredContent.plan).toMatchObject({ fully_reversible: true });
      const report = await call(operator, "svc.execute_rollback", { run_id: run, confirm: true });
      expect(report.structuredContent).toMatchObject({
        compensated: [4, 3, 2, 1, 0],
        skipped: [5],
        complete: true,
      });
      expect(tree(workspace)).toEqual(before);
    },
  );

  /** One run of calls from a known state; answers what the rollback reported and what the tree was before. */
  async function takenBack(run: string, calls: [string, object][], between: () => void = () => {}) {
    const before = tree(workspace);
    const client = await agent(run);
    for (const [tool, args] of calls)
      expect([tool, (await call(client, `files.${tool}`, { ...args })).isError]).toEqual([tool, undefined]);
    between();
    const operator = await admin();
    const { plan } = (await call(operator, "svc.execute_rollback", { run_id: run })).structuredContent;
    const report = await call(operator, "svc.execute_rollback", { run_id: run, confirm: true });
    return { before, plan, report: report.structuredContent };
  }
  const at = (name: string) => join(workspace, name);
  const runOf = (what: string) => what.replaceAll(/\W+/g, "-");
  const fresh = () => {
    rmSync(workspace, { recursive: true, force: true });
    mkdirSync(workspace);
    writeFileSync(at("text.txt"), "one\r\ntwo\nthree\ntwo\n");
    writeFileSync(at("bytes.bin"), Buffer.from([0xff, 0xfe, 0, 13, 10, 0x80]));
    symlinkSync("text.txt", at("link.txt"));
  };

  it.each<[string, [string, object][]]>([
    ["a file written over", [["write_file", { path: "text.txt", content: "new" }]]],
    ["bytes that are no text", [["write_file", { path: "bytes.bin", content: "new" }]]],
    ["a file behind a link", [["write_file", { path: "link.txt", content: "new" }]]],
    [
      "an edit whose new text stands elsewhere too",
      [["edit_file", { path: "text.txt", edits: [{ oldText: "three", newText: "two" }] }]],
    ],
    ["a deleted line", [["edit_file", { path: "text.txt", edits: [{ oldText: "three\n", newText: "" }] }]]],
    [
      "several edits of one call",
      [
        [
          "edit_file",
          {
            path: "text.txt",
            edits: [
              ["one", "1"],
              ["two", "2"],
            ].map(([oldText, newText]) => ({ oldText, newText })),
          },
        ],
      ],
    ],
    [
      "a dry run",
      [["edit_file", { path: "text.txt", edits: [{ oldText: "one", newText: "1" }], dryRun: true }]],
    ],
    [
      "a file written twice, and one at the place of a moved one",
      [
        ["write_file", { path: "text.txt", content: "new" }],
        ["write_file", { path: "text.txt", content: "newer" }],
        ["move_file", { source: "text.txt", destination: "moved.txt" }],
        ["write_file", { path: "text.txt", content: "in its place" }],
      ],
    ],
    [
      "folders that were made, and one that was there",
      [
        ["create_directory", { path: "deep/deeper" }],
        ["create_directory", { path: "deep" }],
        ["write_file", { path: "deep/deeper/file.txt", content: "new" }],
      ],
    ],
  ])("puts back %s", async (what, calls) => {
    verifies("beyond.packs.example");
    fresh();
    const { before, plan, report } = await takenBack(runOf(what), calls);
    expect(plan.fully_reversible).toBe(true);
    expect(report).toMatchObject({ failed: [], complete: true });
    expect(tree(workspace)).toEqual(before);
  });

  it.each<[string, () => void]>([
    ["written by another", () => writeFileSync(at("text.txt"), "foreign")],
    ["deleted meanwhile", () => rmSync(at("text.txt"))],
    [
      "replaced by a link",
      () => {
        rmSync(at("text.txt"));
        symlinkSync("bytes.bin", at("text.txt"));
      },
    ],
  ])("leaves alone what was %s, and says so", async (what, between) => {
    verifies("beyond.packs.example");
    fresh();
    let foreign = {};
    const calls: [string, object][] = [
      ["write_file", { path: "bytes.bin", content: "new" }],
      ["write_file", { path: "text.txt", content: "new" }],
    ];
    const { before, plan, report } = await takenBack(runOf(what), calls, () => {
      between();
      foreign = tree(workspace);
    });
    expect(plan.fully_reversible).toBe(false);
    expect(report).toMatchObject({
      compensated: [0],
      failed: [{ step: 1, conflict: true, error: expect.stringMatching(/^conflict: /) }],
      complete: false,
    });
    expect(tree(workspace)).toEqual({ ...foreign, "bytes.bin": before["bytes.bin"] });
  });

  it.each<[string, string, () => void]>([
    [
      "a file that another put there",
      "text.txt",
      () => writeFileSync(at("moved"), "one\r\ntwo\nthree\nTWO\n"),
    ],
    ["a file at the old place", "text.txt", () => writeFileSync(at("text.txt"), "foreign")],
    ["a file in a moved folder", "folder", () => writeFileSync(at("moved/foreign.txt"), "foreign")],
    [
      "a folder of the same name",
      "folder",
      () => cpSync(aside(at("moved")), at("moved"), { recursive: true }),
    ],
  ])("moves nothing back over %s", async (what, source, between) => {
    verifies("beyond.packs.moves");
    fresh();
    mkdirSync(at("folder"));
    writeFileSync(at("folder/inner.txt"), "inner");
    let foreign = {};
    const { report } = await takenBack(
      runOf(`move-${what}`),
      [["move_file", { source, destination: "moved" }]],
      () => {
        between();
        foreign = tree(workspace);
      },
    );
    expect(report).toMatchObject({ compensated: [], failed: [{ step: 0, conflict: true }], complete: false });
    expect(tree(workspace)).toEqual(foreign);
  });
  const aside = (path: string) => {
    renameSync(path, `${folder}/aside`);
    return `${folder}/aside`;
  };

  it("finds names as the server does, and restores each as the disk had it", async () => {
    verifies("beyond.packs.names");
    fresh();
    const [composed, onDisk] = ["caf\u00e9", "cafe\u0301"];
    mkdirSync(at(onDisk));
    for (const name of ["a", "b", "c"]) writeFileSync(at(`${onDisk}/${onDisk}-${name}.txt`), name);
    const path = (name: string) => `${composed}/${composed}-${name}.txt`;
    const { before, report } = await takenBack("unicode-names", [
      ["write_file", { path: path("a"), content: "new" }],
      ["edit_file", { path: path("b"), edits: [{ oldText: "b", newText: "new" }] }],
      ["move_file", { source: path("c"), destination: "moved.txt" }],
      ["write_file", { path: path("d"), content: "new" }],
      ["move_file", { source: composed, destination: "folder" }],
    ]);
    expect(report).toMatchObject({ compensated: [4, 3, 2, 1, 0], complete: true });
    expect(tree(workspace)).toEqual(before);
  });

  it("restores modes and links two names of a file again, or lists the file", async () => {
    verifies("beyond.packs.modes");
    fresh();
    chmodSync(at("bytes.bin"), 0o6755);
    linkSync(at("text.txt"), at("second-name.txt"));
    const calls = (["bytes.bin", "text.txt"] as const).map((path): [string, object] => [
      "write_file",
      { path, content: "new" },
    ]);
    const { report } = await takenBack("modes-and-links", calls);
    expect(report).toMatchObject({ compensated: [1, 0], complete: true });
    expect(statSync(at("bytes.bin")).mode & 0o7777).toBe(0o6755);
    expect(statSync(at("text.txt")).ino).toBe(statSync(at("second-name.txt")).ino);
    const gone = await takenBack("link-gone", calls, () => rmSync(at("second-name.txt")));
    expect(gone.report).toMatchObject({ compensated: [0], failed: [{ step: 1 }], complete: false });
    expect(readFileSync(at("text.txt"), "utf8")).toBe("one\r\ntwo\nthree\ntwo\n");
  });

  it("is refused what could not be undone, and what no agent should do", async () => {
    verifies("beyond.packs.example");
    fresh();
    writeFileSync(at("long.txt"), "x".repeat(1_100_000));
    const before = tree(workspace);
    const client = await agent("files-refused");
    const names = await toolNames(client);
    for (const name of ["put_back", "set_aside", "remove_folders"])
      expect(names).not.toContain(`companion.${name}`);
    const over = await call(client, "files.write_file", { path: at("long.txt"), content: "short" });
    expect(over.content[0].text).toContain("more than max_bytes");
    const onto = await call(client, "files.move_file", {
      source: at("bytes.bin"),
      destination: at("text.txt"),
    });
    expect(onto.content[0].text).toContain("Destination already exists");
    const aside = await call(client, "companion.set_aside", { path: at("text.txt") });
    expect(aside.structuredContent.reasons).toEqual(["permission companion.undo is not in the run's scope"]);
    const outside = await call(client, "files.read_text_file", { path: "/etc/hostname" });
    expect(outside).toMatchObject({ isError: true, _meta: { "svc/decision": "allow" } });
    expect(tree(workspace)).toEqual(before);
  });
});

describe("the memory server", () => {
  it("forgets its facts, relations and observations included", async () => {
    const client = await agent("memory");
    const graph = async () => (await call(client, "memory.read_graph")).structuredContent;
    await call(client, "memory.create_entities", {
      entities: [{ name: "ann", entityType: "person", observations: ["likes tea"] }],
    });
    const before = await graph();
    const second = await agent("memory-2");
    for (const [tool, args] of [
      ["memory.create_entities", { entities: [{ name: "bob", entityType: "person", observations: [] }] }],
      ["memory.create_relations", { relations: [{ from: "ann", to: "bob", relationType: "knows" }] }],
      ["memory.add_observations", { observations: [{ entityName: "ann", contents: ["likes coffee too"] }] }],
    ] as const) {
      expect([tool, (await call(second, tool, args)).isError]).toEqual([tool, undefined]);
    }
    expect((await graph()).entities).toHaveLength(2);
    const report = await call(await admin(), "svc.execute_rollback", { run_id: "memory-2", confirm: true });
    expect(report.structuredContent).toMatchObject({ compensated: [2, 1, 0], complete: true });
    expect(await graph()).toEqual(before);
    const forget = await call(second, "memory.delete_entities", { entityNames: ["ann"] });
    expect(forget._meta).toMatchObject({
      "svc/decision": "block",
      "svc/approval_id": expect.stringMatching(/^apr_/),
    });
  });
});

describe("the everything server", () => {
  it("shows all its kinds of content unchanged", async () => {
    const client = await agent("everything");
    const content = async (tool: string, args = {}) =>
      (await call(client, tool, args)).content as AnyResult[];
    expect((await content("everything.echo", { message: "hi" }))[0].text).toContain("hi");
    expect(await content("everything.get-tiny-image")).toContainEqual(
      expect.objectContaining({ type: "image", mimeType: "image/png" }),
    );
    expect(await content("everything.get-resource-links", { count: 2 })).toContainEqual(
      expect.objectContaining({ type: "resource_link" }),
    );
    expect(
      (await content("everything.get-annotated-message", { messageType: "error" }))[0].annotations,
    ).toMatchObject({ priority: 1 });
    const weather = await call(client, "everything.get-structured-content", { location: "New York" });
    expect(weather.structuredContent).toMatchObject({
      temperature: expect.any(Number),
      conditions: expect.any(String),
    });
    const env = await call(client, "everything.get-env");
    expect(env.structuredContent.reasons).toEqual([
      "permission everything.secrets is not in the run's scope",
    ]);
  });

  it("tells of its progress", async () => {
    const client = await agent("everything-progress");
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => seen.push(progress);
    await call(client, "everything.trigger-long-running-operation", { duration: 0.4, steps: 4 }, undefined, {
      onprogress,
    });
    expect(seen.length).toBeGreaterThanOrEqual(3);
  });

  it("passes its prompts and resources, as configured", async () => {
    const client = await agent("everything-more");
    const { prompts } = await ask(client, "prompts/list");
    expect(
      prompts
        .map(({ name }: { name: string }) => name)
        .every((name: string) => name.startsWith("everything.")),
    ).toBe(true);
    const got = await ask(client, "prompts/get", { name: prompts[0].name, arguments: {} });
    expect(got.messages.length).toBeGreaterThan(0);
    const { resources } = await ask(client, "resources/list");
    expect((await ask(client, "resources/read", { uri: resources[0].uri })).contents).toHaveLength(1);
  });
});
