/** Many who wait for decisions: they are woken by what happens in their own run, and cost the others nothing. */
import { expect, it } from "vitest";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { testServer } from "../support/server.ts";
import { until } from "../support/until.ts";

const POLICY =
  "version: 1\nrules:\n  - {id: m, match: {tool: mail.send}, action: require_approval, reason: a}\n";

it("a commit makes nobody look whose run it is not about", async () => {
  const store = new MemoryStore();
  let looks = 0;
  const get = store.get.bind(store);
  store.get = (table, key) => {
    if (table === "approvals") looks++;
    return get(table, key);
  };
  const s = await testServer({ policy: POLICY, store });
  const ask = async (run_id: string, tool: string) => {
    await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["mail.send", "crm.read"] });
    const { body } = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
      tool,
      args: {},
      reason: "r",
    });
    return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))?.[0];
  };
  const ids = [];
  for (let i = 0; i < 50; i++) ids.push((await ask(`w${i}`, "mail.send"))!);
  const answers = ids.map((id) => s.call("agent", "GET", `/v1/approvals/${id}?wait=60`));
  // Each looks once, and once more when it is sure to miss nothing.
  await until(() => looks >= 100, "all who wait to look");
  const before = looks;
  for (let i = 0; i < 20; i++) await ask(`other${i}`, "crm.get");
  expect(looks).toBe(before);
  await s.call("approver", "POST", `/v1/approvals/${ids[7]}/approve`, {});
  expect((await answers[7])!.body.status).toBe("approved");
  for (const [i, id] of ids.entries())
    if (i !== 7) await s.call("approver", "POST", `/v1/approvals/${id}/deny`, {});
  const all = await Promise.all(answers);
  expect(all.filter(({ body }) => body.status === "denied")).toHaveLength(49);
});

it("a store that fails while somebody waits ends no process, and the wait continues", async () => {
  const store = new MemoryStore();
  const s = await testServer({ policy: POLICY, store });
  await s.call("agent", "POST", "/v1/runs", { run_id: "failing", permissions: ["mail.send"] });
  const call = { tool: "mail.send", args: {}, reason: "r" };
  const { body } = await s.call("agent", "POST", "/v1/runs/failing/intents", call);
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
  const head = store.head.bind(store);
  const changed = store.changed.bind(store);
  let heads = 0;
  // The watcher begins well; then both of its questions fail, as they do when a store is closed.
  store.head = () => (++heads === 1 ? head() : Promise.reject(new Error("the store is closed")));
  store.changed = () => Promise.reject(new Error("the store is closed"));
  const answer = s.call("agent", "GET", `/v1/approvals/${id}?wait=60`);
  await until(() => heads > 1, "the watcher to fail");
  Object.assign(store, { head, changed });
  await s.call("approver", "POST", `/v1/approvals/${id}/approve`, {});
  expect((await answer).body.status).toBe("approved");
});
