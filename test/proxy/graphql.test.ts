/** A GraphQL API behind the proxy: each change is a call of a separate tool, and ambiguous requests are refused. */
import { expect, it } from "vitest";
import { plainly, startProxy, upstream } from "../support/proxy.ts";
import { verifies } from "../support/verifies.ts";

const titles = new Map([["a", "old"]]);
let refuses = false;
const api = await upstream(({ body }, response) => {
  const { query, variables = {} } = JSON.parse(body) as { query: string; variables?: Record<string, string> };
  const id = variables["id"] ?? "a";
  const answer = () => {
    if (refuses) return { data: null, errors: [{ message: "in the middle of it" }] };
    if (!query.startsWith("mutation")) return { data: { issue: { id, title: titles.get(id) } } };
    // It says success, and does nothing for this title.
    if (variables["title"] !== "pretended") titles.set(id, variables["title"]!);
    return { data: { rename: { success: true } } };
  };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(answer()));
});
const HOST = `127.0.0.1:${api.port}`;
const http = (graphql: string) =>
  `{scheme: http, host: "${HOST}", method: POST, path: /graphql, graphql: "${graphql}"}`;
const MANIFESTS = `
- {tool: issue.get, effect: read, permission: p, http: ${http("query($id: ID!) { issue(id: $id) { id title } }")}}
- tool: issue.rename
  effect: reversible
  permission: p
  http: ${http("mutation($id: ID!, $title: String!) { rename(id: $id, title: $title) { success } }")}
  before: {tool: issue.get, args: {id: $args.id}}
  compensation: {tool: issue.rename, args: {id: $args.id, title: $before.body.data.issue.title}, kind: inverse}
  verification: {tool: issue.get, args: {id: $args.id}, expect: {body: {data: {issue: {title: $before.body.data.issue.title}}}}}
  effect_check: {tool: issue.get, args: {id: $args.id}, expect: {body: {data: {issue: {title: $args.title}}}}, retries: 0}
`;
const RENAME = "mutation($id: ID!, $title: String!) { rename(id: $id, title: $title) { success } }";

it("decides, checks and undoes a change by its field", async () => {
  verifies("beyond.services.graphql", "beyond.services.graphql-errors", "beyond.effect.proxy");
  const proxy = await startProxy({ manifests: MANIFESTS, config: "allow_hosts: [127.0.0.1]\n" });
  const send = (query: string, variables: object = {}, path = "/graphql") =>
    plainly(proxy, {
      host: HOST,
      method: "POST",
      path,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query, variables }),
    });
  const renamed = await send(RENAME, { id: "a", title: "new" });
  expect([renamed.status, renamed.headers["svc-effect"], titles.get("a")]).toEqual([200, "held", "new"]);
  expect((await send(RENAME, { id: "a", title: "pretended" })).headers["svc-effect"]).toBe("missing");
  const reached = api.seen.length;
  const two = 'mutation { rename(id: "a", title: "x") { success } drop(id: "a") { success } }';
  const refused = await send(two);
  expect([refused.status, refused.headers["svc-decision"]]).toEqual([403, "block"]);
  expect(refused.body).toContain("no http manifest fits this GraphQL operation");
  expect((await send("mutation { drop }", {}, "/graphql?query=%7Bissue%7D")).status).toBe(400);
  expect(api.seen.length).toBe(reached);
  refuses = true;
  // The read before the call has no answer, so the call is not made.
  expect((await send(RENAME, { id: "a", title: "third" })).status).toBe(502);
  expect(api.seen.at(-1)!.body).toContain("query(");
  refuses = false;
  const records = await proxy.records();
  expect(records.filter(({ event }) => event === "intended").map(({ tool }) => tool)).toEqual(
    Array(3).fill("issue.rename"),
  );
  const run = String(records.find(({ event }) => event === "intended")!["run_id"]);
  await proxy.svc("resolve", run, "1", "--status", "failed", "--note", "the title did not change");
  await proxy.svc("rollback", run, "--retries", "1");
  expect(titles.get("a")).toBe("old");
});
