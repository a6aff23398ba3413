/**
 * A server on a store that lost text or records between two starts. It gives the same answer as before, or refuses.
 * Nothing that was there is unknown, and no number is smaller.
 */
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { openStore } from "../../src/store/open.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { countTrials } from "../support/trials.ts";

type Kind = "files" | "sqlite";

const RUNS = ["early", "late"];
const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- {tool: pay, effect: irreversible, permission: pay}
`;
const POLICY = `{version: 1, rules: [{id: pay, match: {tool: pay}, action: require_approval}], retention: {default_days: 9}}`;

async function serverOn(store: Kind, data: string): Promise<TestServer> {
  const opened = await openStore({ store, data, database_url: null, warn: () => {} });
  return testServer({ store: opened, manifests: MANIFESTS, policy: POLICY });
}

/** Two runs with steps and a request for approval each, the second behind the first on the ledger. */
async function fill(server: TestServer): Promise<void> {
  for (const run_id of RUNS) {
    await server.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read", "pay"] });
    for (let n = 0; n < 3; n++) {
      const asked = { tool: "crm.get", args: { n }, reason: "look" };
      expect(await ask(server, run_id, asked)).toMatchObject({ status: 200, body: { decision: "allow" } });
    }
    await ask(server, run_id, { tool: "pay", args: {}, reason: "pay" });
  }
}

const ask = (server: TestServer, run_id: string, body: object) =>
  server.call("agent", "POST", `/v1/runs/${run_id}/intents`, body);

/** All readable pages, for a reader of everything and for the agent of the runs. */
async function readAll({ call }: TestServer): Promise<Map<string, Answer>> {
  const paths = HTTP_TABLE.filter(({ method }) => method === "GET").flatMap(({ path }) =>
    path.includes("/runs/{id}") ? RUNS.map((run) => path.replace("{id}", run)) : [path],
  );
  const answers = new Map<string, Answer>();
  for (const key of ["admin", "agent"]) {
    for (const path of paths) answers.set(`${key} ${path}`, await call(key, "GET", path));
  }
  return answers;
}

/** How long the process has been up says nothing of the store. */
const said = ({ text }: Answer): string => text.replace(/"uptime_ms":\d+/, "");

/** What a scrape says of the store: a series that cannot be known is absent. */
async function series({ call }: TestServer): Promise<string[]> {
  const { status, text } = await call("admin", "GET", "/metrics");
  expect(status).toBe(200);
  return text.split("\n").filter((line) => /^svc_(?:ledger_events|approvals|runs|halted)/.test(line));
}

interface Damage {
  name: string;
  store: Kind;
  /** Whether the ledger is still whole on its own. */
  ledger: boolean;
  do(data: string): void;
}

function edit(path: string, change: (text: string) => string): void {
  const before = readFileSync(path, "latin1");
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(path, after, "latin1");
}

function remove(data: string, prefix: string): void {
  for (const name of readdirSync(data)) if (name.startsWith(prefix)) rmSync(join(data, name));
}

function editDatabase(data: string, statement: string): void {
  const db = new DatabaseSync(join(data, "svc.db"));
  db.exec("DROP TRIGGER ledger_loses_no_record");
  db.exec(statement);
  db.close();
}

const DAMAGES: Damage[] = [
  {
    name: "journal changed",
    store: "files",
    ledger: true,
    do: (data) =>
      edit(join(data, "journal-1.jsonl"), (text) => text.replace('"runs","late"', '"runs","lost"')),
  },
  {
    name: "journal deleted",
    store: "files",
    ledger: true,
    do: (data) => rmSync(join(data, "journal-1.jsonl")),
  },
  { name: "checkpoint deleted", store: "files", ledger: true, do: (data) => remove(data, "state.db") },
  {
    name: "ledger cut",
    store: "files",
    ledger: false,
    do: (data) => truncateSync(join(data, "ledger.jsonl"), 1_000),
  },
  {
    name: "journal changed",
    store: "sqlite",
    ledger: true,
    do: (data) => editDatabase(data, "UPDATE journal SET block = replace(block, '\"late\"', '\"lost\"')"),
  },
  {
    name: "ledger cut",
    store: "sqlite",
    ledger: false,
    do: (data) => editDatabase(data, "DELETE FROM ledger WHERE seq > 3"),
  },
];

describe.each(DAMAGES)("$store, $name", ({ store, name, ledger, do: damage }) => {
  it("is answered as before, or refused", async () => {
    const folder = tempDir("damaged");
    const [whole, data] = [join(folder, "whole"), join(folder, "data")];
    const before = await serverOn(store, whole);
    await fill(before);
    const [expected, scraped] = [await readAll(before), await series(before)];
    await before.app.close();
    mkdirSync(data);
    for (const file of readdirSync(whole)) copyFileSync(join(whole, file), join(data, file));
    damage(data);

    const after = await serverOn(store, data);
    expect(await after.call(null, "GET", "/readyz")).toMatchObject({ status: 503, body: { ok: false } });
    for (const run_id of RUNS)
      expect(await ask(after, run_id, { tool: "crm.get", args: {}, reason: "more" })).toMatchObject({
        status: 503,
      });
    let refused = 0;
    for (const [path, answer] of await readAll(after)) {
      if (answer.status === 503) refused++;
      else
        expect([path, answer.status, said(answer)]).toEqual([
          path,
          expected.get(path)!.status,
          said(expected.get(path)!),
        ]);
    }
    expect(refused).toBeGreaterThan(0);
    expect(scraped).toEqual(expect.arrayContaining(await series(after)));
    // Undamaged parts are shown: the trail of a run is on the ledger.
    const trail = await after.call("admin", "GET", "/v1/runs/late/export");
    if (ledger) expect(trail.text).toBe(expected.get("admin /v1/runs/late/export")!.text);
    else expect(trail.status).toBe(503);
    countTrials(store, `${name} between two starts`, 1);
  });
});
