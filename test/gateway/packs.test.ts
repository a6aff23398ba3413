/**
 * The drafts of `svc init` for public tool servers, tried with those servers: each undo is compared with the real state.
 * Their table is in the guide.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { UpstreamSpec } from "../../src/config/sections/gateway.ts";
import type { EgressClient } from "../../src/egress/egress.ts";
import type { ToolRoute } from "../../src/gateway/catalog/catalog.ts";
import { draftManifests } from "../../src/gateway/init/draft-manifest.ts";
import { schemaFingerprint } from "../../src/gateway/init/packs/pack.ts";
import { MANIFEST_PACKS, packRules } from "../../src/gateway/init/packs/packs.ts";
import { readTools } from "../../src/gateway/init/read-tools.ts";
import { manifestText, policyText } from "../../src/gateway/init/render.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { type AnyResult, call, type GatewayTest, testGateway, toolNames } from "./support/gateway.ts";
import { rowsOf, versionOf } from "./support/guide-table.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const GIT = await program("git");
const MODULES = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const folder = tempDir("packs");
const files = join(folder, "files");
const repository = join(folder, "repository");
const database = join(folder, "shop.db");
const gitNow = (...args: string[]) => execFileSync(GIT, args, { cwd: repository, encoding: "utf8" }).trim();

/** Where `npm install @playwright/mcp` was run by hand: a browser is more than every test run should start. */
const BROWSER_AT = process.env["SVC_PLAYWRIGHT_MCP"];
const HEADLESS = ["--headless", "--isolated", "--no-sandbox"];

interface Program {
  entry: string;
  modules?: string;
  script?: string;
  args?: string[];
  env?: Record<string, string>;
}
const SERVERS: Record<string, Program> = {
  filesystem: { entry: "@modelcontextprotocol/server-filesystem", args: [files] },
  memory: {
    entry: "@modelcontextprotocol/server-memory",
    env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
  },
  git: { entry: "@cyanheads/git-mcp-server", env: { HOME: folder, GIT_SIGN_COMMITS: "false" } },
  sqlite: { entry: "mcp-sqlite", script: "mcp-sqlite-server.js", args: [database] },
  everything: { entry: "@modelcontextprotocol/server-everything" },
  "sequential-thinking": { entry: "@modelcontextprotocol/server-sequential-thinking" },
  time: { entry: "time-mcp" },
  ...(BROWSER_AT === undefined
    ? {}
    : {
        playwright: {
          entry: "@playwright/mcp",
          modules: join(BROWSER_AT, "node_modules"),
          script: "cli.js",
          args: [...HEADLESS, "--output-dir", folder, "--executable-path", await program("chromium")],
        },
      }),
};
/** The corrections that a person who knows the tool makes in its draft, if that only says that no undo is known. */
const OWN_UNDO = {
  draft: /(- tool: playwright\.browser_navigate\n.*?effect: )irreversible[^\n]*/s,
  manifest: "$1compensable\n  compensation: {tool: playwright.browser_navigate_back, args: {}}",
};
const upstreamOf = (name: string) => {
  const { entry, modules = MODULES, script = "dist/index.js", args = [], env = {} } = SERVERS[name]!;
  return {
    name,
    command: process.execPath,
    args: [join(modules, entry, script), ...args],
    env,
    namespace: true,
  };
};

/** A call of each server that says one word, the place where the policy finds that word, and the state afterwards. */
interface Saying {
  tool: string;
  path: string;
  args(word: string): Record<string, unknown>;
  /** Left out where the tool changes nothing. */
  there?(): unknown;
}
const SAYINGS: Record<string, Saying> = {
  filesystem: {
    tool: "write_file",
    path: "$args.content",
    args: (content) => ({ path: join(files, "said.txt"), content }),
    there: () => readFileSync(join(files, "said.txt"), "utf8"),
  },
  memory: {
    tool: "create_entities",
    path: "$args.entities[0].name",
    args: (name) => ({ entities: [{ name, entityType: "word", observations: [] }] }),
    there: async () => (await asked("memory.read_graph")).structuredContent,
  },
  everything: { tool: "echo", path: "$args.message", args: (message) => ({ message }) },
  "sequential-thinking": {
    tool: "sequentialthinking",
    path: "$args.thought",
    args: (thought) => ({ thought, thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false }),
  },
  git: {
    tool: "git_commit",
    path: "$args.message",
    args: (message) => ({ path: repository, message, allowEmpty: true }),
    there: () => gitNow("rev-parse", "HEAD"),
  },
  sqlite: {
    tool: "create_record",
    path: "$args.data.name",
    args: (name) => ({ table: "words", data: { id: name.length, name } }),
    there: () => words.prepare("SELECT * FROM words").all(),
  },
  time: {
    tool: "get_timestamp",
    path: "$args.time",
    args: (word) => ({ time: `${YEARS[word]}-03-23 12:30:00.000` }),
  },
  ...(BROWSER_AT === undefined
    ? {}
    : {
        playwright: {
          tool: "browser_navigate",
          path: "$args.url",
          args: (word: string) => ({ url: `data:text/html,<title>${word}</title>` }),
          there: async () => {
            const { content } = await asked("playwright.browser_snapshot");
            return /Page URL: (.*)/.exec(content[0].text)?.[1];
          },
        },
      }),
};
const YEARS: Record<string, number> = {
  fine: 2026,
  forbidden: 1999,
  asked: 2001,
  "asked for too much": 2002,
  "asked for less": 2003,
};
const FORBIDDEN = "^(data:text/html,<title>)?(forbidden|1999)";
const ASKED = "^(data:text/html,<title>)?(asked|200)";
const sayingRules = Object.entries(SAYINGS)
  .map(([name, { tool, path }]) => {
    const when = (value: string) => `when: [{path: "${path}", op: matches, value: "${value}"}]`;
    const match = `match: {tool: ${name}.${tool}}`;
    return `  - {id: ${name}-forbidden, ${match}, ${when(FORBIDDEN)}, action: deny, reason: not this word, hint: say another}
  - {id: ${name}-asked, ${match}, ${when(ASKED)}, action: require_approval, reason: a person looks at it}
`;
  })
  .join("");

/** Examples of calls that change something here, for the undos that the packs declare. */
const DRILLS: Record<string, unknown> = {
  "filesystem.write_file": { path: join(files, "said.txt"), content: "drilled" },
  "filesystem.edit_file": { path: join(files, "said.txt"), edits: [{ oldText: "nothing", newText: "much" }] },
  "filesystem.move_file": { source: join(files, "said.txt"), destination: join(files, "moved.txt") },
  "memory.create_entities": { entities: [{ name: "drill", entityType: "x", observations: [] }] },
};

const words = new DatabaseSync(database);
const tools: Record<string, ToolRoute[]> = {};
let g: GatewayTest;
beforeAll(async () => {
  mkdirSync(files);
  mkdirSync(repository);
  gitNow("init", "-q", "-b", "main");
  gitNow("config", "user.name", "a");
  gitNow("config", "user.email", "a@b.c");
  writeFileSync(join(repository, "a.txt"), "one\n");
  gitNow("add", ".");
  gitNow("commit", "-qm", "first");
  writeFileSync(join(files, "said.txt"), "nothing yet");
  words.exec("CREATE TABLE words (id INTEGER PRIMARY KEY, name TEXT)");
  const most = {
    timeout_ms: 60_000,
    passthrough: [],
    isolation: "shared",
    max_connections: 1,
    idle_ms: 60_000,
  };
  for (const name of Object.keys(SERVERS)) {
    const spec = { ...upstreamOf(name), ...most, cwd: null } as unknown as UpstreamSpec;
    tools[name] = await readTools(spec, {} as EgressClient, "test");
  }
  const drafted = Object.entries(tools).map(([name, routes]) =>
    manifestText(draftManifests(routes, name), name),
  );
  g = await testGateway({
    upstreams: Object.keys(SERVERS).map(upstreamOf),
    manifests: drafted
      .join("\n")
      .replaceAll("lifecycle: draft", "lifecycle: approved")
      .replace(OWN_UNDO.draft, OWN_UNDO.manifest)
      .replace(/^- tool: (\S+)\n/gm, (entry, tool: string) =>
        DRILLS[tool] === undefined ? entry : `${entry}  drill: {args: ${JSON.stringify(DRILLS[tool])}}\n`,
      ),
    config: { environment: "test", drills: { environments: ["test"] } },
    policy: policyText(Object.values(tools).flatMap(packRules)).replace("limits:", `${sayingRules}limits:`),
  });
  return () => words.close();
});

let runs = 0;
/** Calls that pass, in a separate run; then the plan and the report of its rollback. */
async function takenBack(calls: [string, object][], between: () => void | Promise<void> = () => {}) {
  const run_id = `run-${runs++}`;
  const agent = await g.connect("agent", { headers: { "svc-run-id": run_id } });
  for (const [tool, args] of calls) {
    const { isError, content } = await call(agent, tool, { ...args });
    expect([tool, isError && content]).toEqual([tool, undefined]);
  }
  await between();
  const operator = await g.connect("operator", { path: "/operator/mcp" });
  const plan = await call(operator, "svc.plan_rollback", { run_id });
  const report = await call(operator, "svc.execute_rollback", { run_id, confirm: true });
  return { plan: plan.structuredContent, report: report.structuredContent };
}
const asked = async (tool: string, args: object = {}): Promise<AnyResult> =>
  call(await g.connect("agent"), tool, { ...args });

describe("the tools of each server", () => {
  it.each(Object.keys(MANIFEST_PACKS))(
    `are those that were tried: %s ${verifies("beyond.packs.drift")}`,
    (name) => {
      const now = Object.fromEntries(
        tools[name]!.map((route) => [route.name, schemaFingerprint(route.definition)]),
      );
      expect(now).toEqual(MANIFEST_PACKS[name]!.tools);
    },
  );

  it("are drafted as tried where they are the same, and guessed and marked where they are not", () => {
    verifies("beyond.packs.drafts");
    const changed = tools["filesystem"]!.map((route) =>
      route.name === "read_text_file"
        ? { ...route, definition: { ...route.definition, inputSchema: {} } }
        : route,
    );
    const text = manifestText(draftManifests(changed, "filesystem"), "x");
    const entryOf = (tool: string) =>
      text.split("\n\n").find((part) => part.includes(`tool: filesystem.${tool}\n`))!;
    expect(entryOf("move_file")).toContain("# tried with @modelcontextprotocol/server-filesystem 2026.8.31");
    expect(entryOf("move_file")).toContain("title: Move {$args.source} to {$args.destination}");
    for (const tool of ["read_text_file", "write_file", "edit_file"]) {
      expect(entryOf(tool)).toContain("# guess:");
      expect(entryOf(tool)).not.toContain("before:");
    }
    const git = manifestText(draftManifests(tools["git"]!, "git"), "x");
    expect(git).toMatch(/tool: git\.git_push\n {2}lifecycle: draft\n {2}effect: irreversible +# guess:/);
  });
});

describe("the undos of packs", () => {
  it("pass their drills", async () => {
    verifies("beyond.packs.drilled");
    for (const name of ["filesystem", "memory"]) {
      const mine = Object.keys(DRILLS).filter((tool) => tool.startsWith(name));
      const headers = { authorization: "Bearer operator", "content-type": "application/json" };
      const body = JSON.stringify({ upstream: name });
      const started = await fetch(`${g.url}/v1/drills`, { method: "POST", headers, body });
      expect(started.status).toBe(202);
      const seen = async () => {
        const { drills } = (await (await fetch(`${g.url}/v1/drills`, { headers })).json()) as {
          drills: { tool: string; passed: boolean; problem: string | null }[];
        };
        return drills.filter(({ tool }) => mine.includes(tool));
      };
      await until(async () => (await seen()).length === mine.length, "the drills to end");
      for (const drill of await seen()) expect(drill).toMatchObject({ passed: true, problem: null });
    }
    expect(readFileSync(join(files, "said.txt"), "utf8")).toBe("nothing yet");
    expect(readdirSync(files)).toEqual(["said.txt"]);
  });
});

describe("the filesystem pack", () => {
  const at = (name: string) => join(files, name);
  const put = (name: string, bytes: string | Buffer) => writeFileSync(at(name), bytes);
  const text = (name: string) => readFileSync(at(name), "utf8");

  it("restores the old contents, and moves files back", async () => {
    verifies("beyond.packs.tried");
    put("a.txt", "one\r\ntwo\nthree\ntwo\n");
    put("b.txt", "b\n");
    const { plan, report } = await takenBack([
      ["filesystem.edit_file", { path: at("a.txt"), edits: [{ oldText: "three", newText: "two" }] }],
      ["filesystem.write_file", { path: at("a.txt"), content: "new" }],
      ["filesystem.move_file", { source: at("b.txt"), destination: at("c.txt") }],
    ]);
    expect(plan.fully_reversible).toBe(true);
    expect(report).toMatchObject({ compensated: [2, 1, 0], unverified: [], complete: true });
    expect([text("a.txt"), text("b.txt")]).toEqual(["one\r\ntwo\nthree\ntwo\n", "b\n"]);
    expect(readdirSync(files)).not.toContain("c.txt");
  });

  it("leaves alone a file that another put at either end of a move", async () => {
    verifies("beyond.packs.moves");
    const bytes = (last: number) => Buffer.from([0xff, 0xfe, 0, last]);
    const moved = async (name: string, was: Buffer, between: () => void) => {
      put(`${name}.bin`, was);
      const args = { source: at(`${name}.bin`), destination: at(`${name}.moved`) };
      return (await takenBack([["filesystem.move_file", args]], between)).report;
    };
    const conflict = { compensated: [], failed: [{ step: 0, conflict: true }], complete: false };
    // Of the same name and size, and read as the same text.
    expect(await moved("m1", bytes(0xff), () => put("m1.moved", bytes(0xfe)))).toMatchObject(conflict);
    expect(readFileSync(at("m1.moved"))).toEqual(bytes(0xfe));
    expect(readdirSync(files)).not.toContain("m1.bin");
    expect(await moved("m2", bytes(1), () => put("m2.bin", bytes(1)))).toMatchObject(conflict);
    expect(await moved("m3", bytes(1), () => rmSync(at("m3.moved")))).toMatchObject(conflict);
    expect(await moved("m4", bytes(1), () => mkdirSync(at("m4.bin")))).toMatchObject(conflict);
    const back = await moved("m5", bytes(1), () => renameSync(at("m5.moved"), at("m5.bin")));
    expect(back).toMatchObject({ compensated: [0], complete: true });
    expect(readFileSync(at("m5.bin"))).toEqual(bytes(1));
  });

  it("undoes chains of moves and edits, and lists a folder that was moved", async () => {
    verifies("beyond.packs.moves");
    put("n1.txt", "one\n");
    const chain = await takenBack([
      ["filesystem.move_file", { source: at("n1.txt"), destination: at("n2.txt") }],
      ["filesystem.edit_file", { path: at("n2.txt"), edits: [{ oldText: "one", newText: "two" }] }],
      ["filesystem.move_file", { source: at("n2.txt"), destination: at("n3.txt") }],
    ]);
    expect(chain.report).toMatchObject({ compensated: [2, 1, 0], complete: true });
    expect(text("n1.txt")).toBe("one\n");
    mkdirSync(at("folder"));
    const { report } = await takenBack(
      [["filesystem.move_file", { source: at("folder"), destination: at("other") }]],
      () => {
        rmSync(at("other"), { recursive: true });
        mkdirSync(at("other"));
      },
    );
    expect(report).toMatchObject({ compensated: [], unrecoverable: [0], complete: false });
  });

  it("reports a file that returns under a name of another Unicode form", async () => {
    verifies("beyond.packs.names");
    const [composed, apart] = ["caf\u00e9.txt", "cafe\u0301.txt"];
    put(apart, "tea");
    const { report } = await takenBack([
      ["filesystem.move_file", { source: at(composed), destination: at("cafe.txt") }],
    ]);
    expect(report).toMatchObject({ compensated: [], failed: [{ step: 0 }], complete: false });
    expect(report.failed[0].error).toContain("did not show the expected state");
  });

  it("lists a folder that the run made, and not one that was there", async () => {
    verifies("beyond.packs.folders");
    mkdirSync(at("there"));
    const { report } = await takenBack(
      [
        ["filesystem.create_directory", { path: at("there") }],
        ["filesystem.create_directory", { path: at("made") }],
      ],
      () => put("there/foreign.txt", "foreign"),
    );
    expect(report).toMatchObject({ compensated: [0], unrecoverable: [1], failed: [], complete: false });
  });

  it("names what it cannot undo, and leaves another's writes alone", async () => {
    verifies("beyond.packs.tried", "beyond.before.lossless");
    put("bytes.bin", Buffer.from([0xff, 0xfe, 0]));
    put("a.txt", "old");
    const { plan, report } = await takenBack(
      [
        ["filesystem.write_file", { path: at("new.txt"), content: "new" }],
        ["filesystem.write_file", { path: at("bytes.bin"), content: "new" }],
        ["filesystem.write_file", { path: at("a.txt"), content: "new" }],
      ],
      () => put("a.txt", "foreign"),
    );
    expect(plan.fully_reversible).toBe(false);
    expect(report).toMatchObject({
      compensated: [],
      unrecoverable: [1, 0],
      failed: [{ step: 2, conflict: true }],
      complete: false,
    });
    expect(text("a.txt")).toBe("foreign");
    put("bytes.bin", Buffer.from([0xff, 0xfe, 0]));
    const edits = [{ oldText: "\u0000", newText: "1" }];
    const refused = await asked("filesystem.edit_file", { path: at("bytes.bin"), edits });
    expect(refused.content[0].text).toContain("bytes that are not text");
    expect([...readFileSync(at("bytes.bin"))]).toEqual([0xff, 0xfe, 0]);
  });
});

describe("the memory pack", () => {
  const graph = async () => (await asked("memory.read_graph")).structuredContent;
  const person = (name: string) => ({ name, entityType: "person", observations: ["likes tea"] });

  it("removes additions, and restores deletions", async () => {
    verifies("beyond.packs.tried");
    for (const name of ["ann", "bob"]) await asked("memory.create_entities", { entities: [person(name)] });
    const before = await graph();
    const { plan, report } = await takenBack([
      ["memory.create_entities", { entities: [person("cid")] }],
      ["memory.create_entities", { entities: [person("ann")] }],
      ["memory.create_relations", { relations: [{ from: "ann", to: "cid", relationType: "knows" }] }],
      ["memory.add_observations", { observations: [{ entityName: "ann", contents: ["likes tea", "naps"] }] }],
      ["memory.delete_entities", { entityNames: ["bob"] }],
    ]);
    expect(plan.fully_reversible).toBe(true);
    expect(report).toMatchObject({ compensated: [4, 3, 2, 1, 0], unverified: [], complete: true });
    expect(await graph()).toEqual(before);
  });

  it("leaves alone an entity that another used since, and refuses lists that no undo covers", async () => {
    verifies("beyond.packs.tried");
    const { report } = await takenBack([["memory.create_entities", { entities: [person("dee")] }]], () =>
      asked("memory.add_observations", { observations: [{ entityName: "dee", contents: ["foreign"] }] }),
    );
    expect(report).toMatchObject({ compensated: [], failed: [{ step: 0, conflict: true }] });
    expect(JSON.stringify(await graph())).toContain("foreign");
    const two = await asked("memory.create_entities", { entities: [person("eve"), person("fay")] });
    expect(two._meta["svc/decision"]).toBe("block");
    const gone = { relations: [{ from: "ann", to: "cid", relationType: "knows" }] };
    expect((await asked("memory.delete_relations", gone))._meta["svc/approval_id"]).toMatch(/^apr_/);
  });
});

describe("the git pack", () => {
  it("undoes staging, commits and checkouts", async () => {
    verifies("beyond.packs.tried");
    const [head, path] = [gitNow("rev-parse", "HEAD"), repository];
    writeFileSync(join(repository, "a.txt"), "two\n");
    const { plan, report } = await takenBack([
      ["git.git_add", { path, paths: ["a.txt"] }],
      ["git.git_commit", { path, message: "second" }],
      ["git.git_checkout", { path, target: "other", createBranch: true }],
    ]);
    expect(plan.fully_reversible).toBe(true);
    expect(report).toMatchObject({ compensated: [2, 1, 0], unverified: [], failed: [], complete: true });
    expect([gitNow("rev-parse", "HEAD"), gitNow("branch", "--show-current")]).toEqual([head, "main"]);
    expect([gitNow("diff", "--cached"), readFileSync(join(path, "a.txt"), "utf8")]).toEqual(["", "two\n"]);
  });

  it("leaves alone a branch that another committed to since", async () => {
    verifies("beyond.packs.tried");
    const path = repository;
    const { report } = await takenBack(
      [["git.git_commit", { path, message: "second", allowEmpty: true }]],
      () => void gitNow("commit", "-qm", "foreign", "--allow-empty"),
    );
    expect(report).toMatchObject({ compensated: [], failed: [{ step: 0, conflict: true }] });
    expect(gitNow("log", "-1", "--format=%s")).toBe("foreign");
    const thrown = await asked("git.git_checkout", { path, target: "HEAD", paths: ["a.txt"] });
    expect(thrown._meta["svc/approval_id"]).toMatch(/^apr_/);
  });
});

describe("the sqlite pack", () => {
  let db: InstanceType<typeof DatabaseSync>;
  beforeAll(() => {
    db = new DatabaseSync(database);
    db.exec(`CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT);
      CREATE TABLE codes (id TEXT, value);
      INSERT INTO items VALUES (1, 'pen', 0.1, NULL), (2, 'ink ü', 3, 'it''s "blue"'), (3, 'cap', 2.5, '');
      INSERT INTO codes VALUES ('big', 9007199254740993), ('blob', x'00ff'), ('twice', 1), ('twice', 2)`);
    return () => db.close();
  });
  /** Integers separately from other numbers, and none of them rounded. */
  const all = () =>
    ["items", "codes"].map((table) => {
      const statement = db.prepare(`SELECT * FROM ${table}`);
      statement.setReadBigInts(true);
      return statement.all();
    });
  const items = (id: JsonValue) => ({ table: "items", conditions: { id } });
  const codes = (id: JsonValue) => ({ table: "codes", conditions: { id } });

  it("takes out the row that was made, and puts back those that were changed and deleted", async () => {
    verifies("beyond.packs.tried");
    const before = all();
    const { plan, report } = await takenBack(
      [
        ["sqlite.create_record", { table: "items", data: { id: 9, name: "new", price: true } }],
        ["sqlite.update_records", { ...items(1), data: { name: "quill", note: "new" } }],
        ["sqlite.update_records", { ...items("1"), data: { price: null } }],
        ["sqlite.delete_records", items(2)],
        ["sqlite.delete_records", items(404)],
        ["sqlite.create_record", { table: "codes", data: { id: "new", value: null } }],
      ],
      () => expect(all()).not.toEqual(before),
    );
    expect(JSON.stringify(plan.actions)).toContain("changes by triggers and cascades in other rows");
    expect(report).toMatchObject({
      compensated: [5, 3, 2, 1, 0],
      unrecoverable: [4],
      unverified: [],
      failed: [],
    });
    expect(all()).toEqual(before);
  });

  it("does not undo rows that the server cannot show or distinguish, and reports it", async () => {
    verifies("beyond.packs.tried");
    const { plan, report } = await takenBack([
      ["sqlite.update_records", { ...codes("big"), data: { value: 1 } }],
      ["sqlite.create_record", { table: "codes", data: { id: "twice", value: 3 } }],
      ["sqlite.create_record", { table: "items", data: { name: "numbered by the table" } }],
      ["sqlite.delete_records", codes("blob")],
      ["sqlite.delete_records", codes("twice")],
    ]);
    expect(plan.fully_reversible).toBe(false);
    expect(report).toMatchObject({ compensated: [], unrecoverable: [2, 1, 0], complete: false });
    expect(report.failed.map(({ step }: { step: number }) => step)).toEqual([4, 3]);
  });

  it("leaves another's writes alone, and asks before many rows or free SQL", async () => {
    verifies("beyond.packs.tried");
    const { report } = await takenBack(
      [
        ["sqlite.update_records", { ...items(3), data: { name: "hat" } }],
        ["sqlite.create_record", { table: "items", data: { id: 30, name: "mine" } }],
      ],
      () => db.exec("UPDATE items SET note = 'foreign' WHERE id IN (3, 30)"),
    );
    expect(report).toMatchObject({ compensated: [], failed: [{ conflict: true }, { conflict: true }] });
    const kept = all();
    for (const [tool, args] of [
      ["query", { sql: "SELECT 1" }],
      ["update_records", { table: "items", data: { name: "x" }, conditions: { note: "foreign" } }],
      ["delete_records", { table: "items", conditions: { note: "foreign" } }],
    ] as const)
      expect((await asked(`sqlite.${tool}`, args))._meta["svc/approval_id"]).toMatch(/^apr_/);
    for (const [tool, args] of [
      ["create_record", { table: "items", data: { id: null, name: "x" } }],
      ["update_records", { ...items(3), data: { id: 4 } }],
    ] as const)
      expect((await asked(`sqlite.${tool}`, args))._meta["svc/decision"]).toBe("block");
    expect(all()).toEqual(kept);
  });
});

describe("servers that change nothing", () => {
  it("need no undo, and print no environment unasked", async () => {
    verifies("beyond.packs.tried");
    const thought = { thought: "so", thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false };
    const { report } = await takenBack([
      ["sequential-thinking.sequentialthinking", thought],
      ["everything.get-sum", { a: 1, b: 2 }],
    ]);
    expect(report).toMatchObject({ skipped: [1, 0], complete: true });
    expect((await asked("everything.get-env"))._meta["svc/approval_id"]).toMatch(/^apr_/);
  });
});

describe("a server as published", () => {
  it.each(Object.entries(SAYINGS))("%s", async (name, { tool, args, there }) => {
    verifies("beyond.servers.matrix");
    const run_id = `said-${name}`;
    const agent = await g.connect("agent", { headers: { "svc-run-id": run_id } });
    const operator = await g.connect("operator", { path: "/operator/mcp" });
    const say = (word: string): Promise<AnyResult> => call(agent, `${name}.${tool}`, args(word));
    const made = ({ isError, _meta }: AnyResult) =>
      isError === undefined && _meta["svc/decision"] === "allow";
    const before = await there?.();
    const listed = (await toolNames(agent)).filter((one) => one.startsWith(`${name}.`)).length;
    const seen: Record<string, boolean> = { Allowed: made(await say("fine")) };
    const { content, _meta } = await say("forbidden");
    seen["Blocked"] =
      _meta["svc/decision"] === "block" && content[0].text === "not this word\nhint: say another";
    const waits = await say("asked");
    seen["Waits"] = waits.content[0].text.startsWith("a person looks at it\napproval required");
    await call(operator, "svc.approve_action", { approval_id: waits._meta["svc/approval_id"], note: "fine" });
    seen["Approved"] = made(await say("asked"));
    const approval_id = (await say("asked for too much"))._meta["svc/approval_id"];
    const offer = { args: args("asked for less") };
    await call(operator, "svc.deny_action", { approval_id, note: "less", offer });
    const denied = (await call(agent, "svc.await_approval", { approval_id, seconds: 0 })).structuredContent;
    expect(denied.offer.args).toEqual(offer.args);
    seen["Denied with an offer"] = made(await say("asked for less"));
    if (there !== undefined) expect(await there()).not.toEqual(before);
    const report = await call(operator, "svc.execute_rollback", { run_id, confirm: true });
    expect(report.structuredContent.complete).toBe(true);
    expect(await there?.()).toEqual(before);
    const cells = Object.values(seen).map((yes) => (yes ? "yes" : "no"));
    const { entry, modules } = SERVERS[name]!;
    const row = [
      `\`${entry}\` ${versionOf(entry, modules)}`,
      `${listed} of ${tools[name]!.length}`,
      ...cells,
    ];
    expect(rowsOf("Server")).toEqual([["Server", "Tools listed", ...Object.keys(seen), "Undone"]]);
    expect(rowsOf(`\`${entry}\``)).toEqual([[...row, there === undefined ? "changes nothing" : "yes"]]);
  });
});
