/** One run in each state, and what the API, the command line and the console say of each. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { speak } from "../support/io.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { type Client, loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "./support/server.ts";

const QUIET_MS = 31 * 60_000;
const EXPECTED = {
  untouched: "settled",
  quiet: "settled",
  recent: "open",
  working: "open",
  waiting: "open",
  lost: "needs attention",
  broken: "needs attention",
  asking: "needs attention",
} as const;
type RunName = keyof typeof EXPECTED;

let s: ConsoleServer;
let admin: Client;

const agent = (path: string, body: unknown) => s.api("agent", "POST", path, body);

/** Opens a run and, with a tool, makes one call in it. */
async function openWith(run_id: RunName, tool?: string, amount = 20, status?: string): Promise<void> {
  const permissions = ["crm.read", "crm.write", "pay.refund"];
  await agent("/v1/runs", { run_id, permissions, reason: `a run that is ${run_id}` });
  if (tool === undefined) return;
  await agent(`/v1/runs/${run_id}/intents`, { tool, args: { amount }, reason: "a call" });
  if (status === undefined) return;
  const outcome = { status, ...(status === "succeeded" ? { result: { id: "1" } } : { error: "no answer" }) };
  expect((await agent(`/v1/runs/${run_id}/steps/0/outcome`, outcome)).status).toBe(200);
}

async function rollBack(run_id: RunName): Promise<void> {
  const path = `/v1/runs/${run_id}/rollback`;
  await s.api("operator", "POST", path, { confirm: true, retries: 1 });
  const job = async () => (await s.api("operator", "GET", path)).body.job;
  await until(async () => (await job()).state === "done", `the rollback of ${run_id}`);
}

beforeAll(async () => {
  const env = shiftedEnv();
  s = await consoleServer({ env, config: 'console: login\nrollback: {compensator_cmd: "false"}\n' });
  await openWith("quiet", "crm.get", 1, "succeeded");
  env.forward(QUIET_MS);
  await openWith("untouched");
  await openWith("recent", "crm.get", 1, "succeeded");
  await openWith("working", "crm.get");
  await openWith("waiting", "pay.refund", 900);
  await openWith("lost", "crm.create", 1, "uncertain");
  await openWith("broken", "crm.create", 1, "succeeded");
  await openWith("asking", "pay.refund", 20, "succeeded");
  await rollBack("broken");
  await rollBack("asking");
  admin = await loggedIn(s.url, "admin");
});
afterAll(() => s.close());

const svc = (...args: string[]) =>
  speak([...args, "--server", s.url], { cwd: s.folder, env: { SVC_TOKEN: "admin" } });

/** The words of a page's part, without its tags. */
const wordsOf = (html: string) =>
  html
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

/** The state that a table of runs shows, by run. */
function rowsOf(html: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [row] of html.matchAll(/<tr>[\s\S]*?<\/tr>/g)) {
    const run = /\/console\/runs\/([a-z]+)"/.exec(row)?.[1];
    const state = /needs attention|settled|open/.exec(wordsOf(row).replace(/a run that is [a-z]+/, ""))?.[0];
    if (run !== undefined && state !== undefined) found[run] = state;
  }
  return found;
}

it("is the same on every surface", async () => {
  verifies("beyond.run-state.everywhere");
  const { runs } = (await s.api("admin", "GET", "/v1/search/runs?limit=100")).body;
  expect(
    Object.fromEntries(runs.map((run: { run_id: string; state: string }) => [run.run_id, run.state])),
  ).toEqual(EXPECTED);
  const actor = (await s.api("admin", "GET", "/v1/actors/agent")).body;
  expect(
    Object.fromEntries(actor.runs.map((run: { run_id: string; state: string }) => [run.run_id, run.state])),
  ).toEqual(EXPECTED);

  expect(rowsOf((await admin.get("/console/runs")).text)).toEqual(EXPECTED);
  expect(rowsOf((await admin.get("/console/actors/agent")).text)).toMatchObject(EXPECTED);
  const { out } = await svc("runs");
  for (const [run, state] of Object.entries(EXPECTED)) {
    const line = out.split("\n").find((one) => one.startsWith(`${run} `));
    expect(line).toMatch(new RegExp(` {2}${state}\\b`));
    const { text } = await admin.get(`/console/runs/${run}`);
    expect(wordsOf(/<div id="run"[\s\S]*?<\/dl>/.exec(text)![0]), run).toMatch(
      new RegExp(`^State ${state} `),
    );
    expect([run, (await svc("show", run)).code]).toEqual([run, state === "needs attention" ? 2 : 0]);
  }
});

it("has its reason on the overview", async () => {
  verifies("beyond.run-state.everywhere");
  const { text } = await admin.get("/console/");
  const items = [...text.matchAll(/<li>[\s\S]*?<\/li>/g)].map(([item]) => wordsOf(item));
  const of = (run: RunName) => items.find((item) => item.startsWith(`attention ${run} `));
  expect(of("lost")).toMatch(/ agent, 1 unknown outcome$/);
  expect(of("asking")).toMatch(/ agent, an undo is left$/);
});

it("is what every filter for attention means", async () => {
  verifies("beyond.run-state.everywhere");
  const wanted = Object.keys(EXPECTED).filter((run) => EXPECTED[run as RunName] === "needs attention");
  const ids = (runs: { run_id: string }[]) => runs.map(({ run_id }) => run_id).sort();
  const found = (await s.api("admin", "GET", "/v1/search/runs?attention=1&limit=100")).body.runs;
  expect(ids(found)).toEqual(wanted.toSorted());
  const listed = await svc("runs", "--attention", "--json");
  expect([
    listed.code,
    ids(
      listed.out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ),
  ]).toEqual([2, wanted.toSorted()]);
  expect(Object.keys(rowsOf((await admin.get("/console/runs?attention=1")).text)).sort()).toEqual(
    wanted.toSorted(),
  );
});
