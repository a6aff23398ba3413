/** Rollbacks and containments that a server starts: they make the requests of `http` tools themselves. */
import { expect, it } from "vitest";
import { startSvcServer } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { ADMIN_KEY, selfSigned, startProxy, throughTunnel, upstream } from "../support/proxy.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

await program("openssl");
const TLS = selfSigned(["localhost"]);
const SECRET = "undo-secret-2718";
const users = new Map<string, unknown>();
let made = 0;
const api = await upstream(({ method, url, body, headers }, response) => {
  const isKnown = headers.authorization === `Bearer ${SECRET}`;
  const id = url.split("/")[2] ?? "";
  const answer = (status: number, value: unknown) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (!isKnown) return answer(401, {});
  if (method === "POST") {
    users.set(`u${++made}`, JSON.parse(body));
    return answer(201, { id: `u${made}` });
  }
  if (method === "DELETE") return answer(users.delete(id) ? 200 : 404, {});
  return users.has(id) ? answer(200, users.get(id)) : answer(404, {});
}, TLS);
const HOST = `localhost:${api.port}`;
const env = { NODE_EXTRA_CA_CERTS: TLS.file, API_TOKEN: SECRET };
const proxy = await startProxy({
  manifests: `
- tool: users.get
  effect: read
  permission: users
  http: {host: "${HOST}", method: GET, path: "/users/{id}"}
- tool: users.create
  effect: compensable
  permission: users
  http: {host: "${HOST}", method: POST, path: /users}
  compensation: {tool: users.delete, args: {id: $result.body.id}, kind: inverse}
  verification: {tool: users.get, args: {id: $result.body.id}, expect: {status: 404}}
- tool: users.delete
  effect: irreversible
  permission: users
  http: {host: "${HOST}", method: DELETE, path: "/users/{id}"}
- tool: desk.open
  effect: compensable
  permission: desk
  compensation: {tool: desk.close, args: {}, kind: inverse}
- {tool: desk.close, effect: irreversible, permission: desk}
`,
  config: `allow_hosts: [localhost]
credentials: [{name: api, hosts: ["${HOST}"], header: {name: Authorization, prefix: "Bearer "}, from: {env: API_TOKEN}}]
`,
  env,
});
const server = await startSvcServer(["--config", "svc.config.yaml"], { cwd: proxy.folder, env });

interface JobAnswer {
  plan?: unknown;
  job: { id: string; state: string; report: object };
}

async function call(method: string, path: string, body?: object): Promise<JobAnswer> {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as JobAnswer;
}

async function ended(path: string): Promise<JobAnswer["job"]> {
  let answer = await call("GET", path);
  await until(async () => {
    answer = await call("GET", path);
    return answer.job.state === "done";
  }, "the job");
  return answer.job;
}

async function createUser(): Promise<string> {
  const { status } = await throughTunnel(proxy, {
    host: HOST,
    method: "POST",
    path: "/users",
    headers: { "content-type": "application/json" },
    body: '{"name":"Ada"}',
  });
  expect(status).toBe(201);
  const records = await proxy.records();
  return records.findLast(({ tool }) => tool === "users.create")!["run_id"] as string;
}

it("a rollback on the server undoes them and reads back", async () => {
  verifies("beyond.http.undo-jobs");
  const run = await createUser();
  expect(users.size).toBe(1);
  const planned = await call("POST", `/v1/runs/${run}/rollback`, {});
  expect(JSON.stringify(planned.plan)).toContain("users.delete");
  await call("POST", `/v1/runs/${run}/rollback`, { confirm: true });
  const { report } = await ended(`/v1/runs/${run}/rollback`);
  expect(report).toMatchObject({ complete: true, compensated: [0] });
  expect(users.size).toBe(0);
  expect(JSON.stringify(await proxy.records())).not.toContain(SECRET);
});

it("leaves tools without an http manifest to their own way, and says that there is none", async () => {
  verifies("beyond.http.undo-jobs");
  const key = { authorization: "Bearer agent-key-0001", "content-type": "application/json" };
  const post = (path: string, body: object) =>
    fetch(server.url + path, { method: "POST", headers: key, body: JSON.stringify(body) });
  await post("/v1/runs", { run_id: "desk", permissions: ["desk"] });
  await post("/v1/runs/desk/intents", { tool: "desk.open", args: {}, reason: "r" });
  await post("/v1/runs/desk/steps/0/outcome", { status: "succeeded" });
  await call("POST", "/v1/runs/desk/rollback", { confirm: true, retries: 1 });
  const { report } = await ended("/v1/runs/desk/rollback");
  expect(report).toMatchObject({ complete: false });
  expect(JSON.stringify(report)).toContain("no other way to call it is configured");
});

it("a containment undoes them too", async () => {
  verifies("beyond.http.undo-jobs");
  await createUser();
  expect(users.size).toBe(1);
  const started = await call("POST", "/v1/contain", { actor: "agent", reason: "it went mad", confirm: true });
  const { id } = started.job;
  await ended(`/v1/contain/${id}`);
  expect(users.size).toBe(0);
});
