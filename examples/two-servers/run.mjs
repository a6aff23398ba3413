/**
 * Two servers on one PostgreSQL behind a proxy: node examples/two-servers/run.mjs
 * DATABASE_URL names the database, an empty one; without it a throwaway PostgreSQL is started.
 */
import { join } from "node:path";
import { ask, story } from "../stage.mjs";
import { database } from "./database.mjs";
import { balance } from "./proxy.mjs";

const here = (name) => join(import.meta.dirname, name);

await story(async (stage) => {
  const postgres = await database();
  Object.assign(stage.env, {
    SVC_STORE: "postgres",
    SVC_DATABASE_URL: postgres.url,
    SVC_MANIFESTS: here("manifests.yaml"),
    SVC_POLICY: here("policy.yaml"),
    SVC_KEYS: join(stage.folder, "keys.json"),
    SVC_DATA: join(stage.folder, "data"),
  });
  const agent = await stage.key("deploy-bot", "agent", "deploy.*");
  const admin = await stage.key("ann", "admin");
  const a = await stage.server();
  const b = await stage.server();
  const proxy = await balance([a.url, b.url]);

  const at = (server, key) => (method, path, body) => ask(server.url + path, { key, method, body });
  const agentAtA = at(a, agent);
  const annAtB = at(b, admin);
  const agentAtProxy = at(proxy, agent);
  const release = { tool: "deploy.release", args: { service: "shop" }, reason: "version 7" };
  const status = { tool: "deploy.status", args: {}, reason: "how is it" };

  try {
    const { run_id } = await agentAtA("POST", "/v1/runs", { permissions: ["deploy.read", "deploy.write"] });
    const intents = `/v1/runs/${run_id}/intents`;

    const asked = await agentAtA("POST", intents, release);
    stage.say(`A  agent asks:       ${asked.decision}, ${asked.reasons[0]}`);
    const id = /apr_[0-9a-f-]{36}/.exec(asked.reasons.join())[0];
    // The agent waits at A; a person decides at B.
    const heard = agentAtA("GET", `/v1/approvals/${id}?wait=30`).then(({ status }) => [
      status,
      performance.now(),
    ]);
    const decided = await annAtB("POST", `/v1/approvals/${id}/approve`, { note: "go" });
    const told = performance.now();
    stage.say(`B  ann approves:     ${decided.status}`);
    const [seen, when] = await heard;
    stage.say(`A  agent hears:      ${seen}, ${Math.max(0, Math.round(when - told))} ms after B answered`);
    stage.say(`A  agent asks again: ${(await agentAtA("POST", intents, release)).decision}`);

    const halt = await annAtB("POST", "/v1/halt", { reason: "incident 12" });
    stage.say(`B  ann halts:        ${halt.reason}`);
    const halted = await agentAtA("POST", intents, status);
    stage.say(`A  agent asks:       ${halted.decision}, ${halted.reasons[0]}`);
    await annAtB("POST", "/v1/resume", {});
    stage.say(
      `A  agent asks:       ${(await agentAtA("POST", intents, status)).decision}, the halt is lifted`,
    );

    // A is killed outright. Nobody who was answered loses anything, and B goes on.
    a.child.kill("SIGKILL");
    await a.ended;
    const calls = await Promise.all(Array.from({ length: 10 }, () => agentAtProxy("POST", intents, status)));
    const allowed = calls.filter(({ decision }) => decision === "allow").length;
    stage.say(`   A is killed; ten calls through the proxy: ${allowed} allowed`);
    stage.say();
    await stage.verify();
  } finally {
    proxy.server.close();
    await stage.end();
    await postgres.drop();
  }
});
