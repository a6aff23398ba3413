/** Services that answer 200 to a failed call, and values that are in headers only. */
import { expect, it } from "vitest";
import { plainly, startProxy, upstream } from "../support/proxy.ts";
import { verifies } from "../support/verifies.ts";

/** A chat that answers 200 always, and a store that keeps versions. */
const reactions = new Set(["earlier"]);
const versions = new Map<string, string[]>([["kept", ["one"]]]);
const service = await upstream(({ method, url, body }, response) => {
  const json = (value: unknown) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  const [path, query] = url.split("?");
  const name = path!.split("/").slice(2).join("/");
  if (url === "/add" || url === "/remove") {
    const wanted = (JSON.parse(body) as { name: string }).name;
    if (reactions.has(wanted) === (url === "/add")) return json({ ok: false, error: "no change" });
    if (url === "/add") reactions.add(wanted);
    else reactions.delete(wanted);
    return json({ ok: true });
  }
  const list = versions.get(name) ?? [];
  if (method === "PUT") versions.set(name, [...list, body]);
  if (method === "DELETE") versions.set(name, list.toSpliced(Number(query!.split("=")[1]), 1));
  const now = versions.get(name) ?? [];
  const [last] = now.slice(-1);
  response.writeHead(last === undefined ? 404 : 200, {
    ...(last === undefined ? {} : { etag: `"${last}"`, "x-version": String(now.length - 1) }),
    "content-length": "0",
  });
  response.end();
});
const HOST = `127.0.0.1:${service.port}`;
const http = (method: string, path: string, more: string) =>
  `{scheme: http, host: "${HOST}", method: ${method}, path: "${path}"${more}}`;
const FAILED = ", failed: {body: {ok: false}}";
const SHOWN = ", answer_headers: [etag, x-version]";
const MANIFESTS = `
- {tool: react, effect: compensable, permission: p, http: ${http("POST", "/add", FAILED)}, compensation: {tool: unreact, args: {name: $args.name}}}
- {tool: unreact, effect: irreversible, permission: p, http: ${http("POST", "/remove", FAILED)}}
- {tool: head, effect: read, permission: p, http: ${http("HEAD", "/store/{key:path}", SHOWN)}}
- {tool: drop, effect: irreversible, permission: p, http: ${http("DELETE", "/store/{key:path}", ", query: [version]")}}
- tool: put
  effect: compensable
  permission: p
  http: ${http("PUT", "/store/{key:path}", `, body: opaque${SHOWN}`)}
  before: {tool: head, args: {key: $args.key}, absent: {status: 404}}
  compensation: {tool: drop, args: {key: $args.key, version: $result.headers.x-version}}
  verification: {tool: head, args: {key: $args.key}, expect: {headers: {etag: $before.headers.etag}}}
  effect_check: {tool: head, args: {key: $args.key}, expect: {headers: {etag: $result.headers.etag}}, retries: 0}
`;

const proxy = await startProxy({ manifests: MANIFESTS, config: "allow_hosts: [127.0.0.1]\n" });
const react = (path: string, name: string) =>
  plainly(proxy, {
    host: HOST,
    method: "POST",
    path,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name }),
  });
const rollback = async (...more: string[]) => {
  const [first] = (await proxy.records()).filter(({ event }) => event === "intended");
  return JSON.parse((await proxy.svc("rollback", String(first!["run_id"]), "--json", ...more)).out) as {
    compensated: number[];
    failed: { step: number; error: string }[];
  };
};

it("does not undo what did not happen, and believes no undo that says that it failed", async () => {
  verifies("beyond.services.failed", "beyond.services.headers");
  // The reaction was there before the run: nothing was added, so nothing may be removed.
  expect((await react("/add", "earlier")).status).toBe(200);
  await react("/add", "fresh");
  await react("/add", "gone");
  reactions.delete("gone");
  const put = await plainly(proxy, { host: HOST, method: "PUT", path: "/store/kept", body: "two" });
  expect([put.status, put.headers["svc-effect"]]).toEqual([200, "held"]);
  const statuses = (await proxy.records())
    .filter(({ event }) => ["succeeded", "failed"].includes(String(event)))
    .map(({ step, event }) => [step, event]);
  expect(statuses).toEqual([
    [0, "failed"],
    [1, "succeeded"],
    [2, "succeeded"],
    [3, "succeeded"],
  ]);
  const report = await rollback("--retries", "1");
  expect(report.compensated).toEqual([3, 1]);
  expect(report.failed).toMatchObject([
    { step: 2, error: expect.stringContaining("a body that says that it failed") },
  ]);
  expect([...reactions]).toEqual(["earlier"]);
  expect(versions.get("kept")).toEqual(["one"]);
});
