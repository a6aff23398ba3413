/** An HTTP service that answers success and did nothing, or something else, is found out by the proxy's own read. */
import { expect, it } from "vitest";
import { plainly, startProxy, upstream } from "../support/proxy.ts";
import { verifies } from "../support/verifies.ts";

const things = new Map<string, unknown>();
const api = await upstream(({ method, url, body }, response) => {
  const [, kind, id = ""] = url.split("/");
  const json = (status: number, value: unknown) => {
    const text = JSON.stringify(value);
    const headers = { "content-type": "application/json", "svc-effect": "held" };
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(text) });
    response.end(text);
  };
  if (kind === "down") return json(503, {});
  if (method === "GET") return things.has(id) ? json(200, things.get(id)) : json(404, {});
  if (method === "DELETE") return json(200, { deleted: true });
  const thing = JSON.parse(body) as { id: string };
  if (kind !== "pretend") things.set(thing.id, kind === "other" ? { id: thing.id, name: "x" } : thing);
  json(201, { id: thing.id });
});
const HOST = `127.0.0.1:${api.port}`;
const tool = (kind: string, read = "thing.get") => `
- tool: ${kind}.create
  effect: compensable
  permission: p
  http: {scheme: http, host: "${HOST}", method: POST, path: /${kind}}
  compensation: {tool: thing.delete, args: {id: $result.body.id}}
  effect_check: {tool: ${read}, args: {id: $result.body.id}, expect: {status: 200, body: {name: $args.name}}, retries: 0}
`;
const reading = (name: string, path: string) => `
- {tool: ${name}, effect: read, permission: p, http: {scheme: http, host: "${HOST}", method: GET, path: "/${path}/{id}"}}`;
const MANIFESTS = `${reading("thing.get", "thing")}${reading("down.get", "down")}
- tool: thing.delete
  effect: irreversible
  permission: p
  http: {scheme: http, host: "${HOST}", method: DELETE, path: "/thing/{id}"}
  effect_check: {tool: thing.get, args: {id: $args.id}, expect: {status: 404}, retries: 0}
${tool("thing")}${tool("pretend")}${tool("other")}${tool("blind", "down.get")}`;

it("reads after each success, and no answer of the service can say what it found", async () => {
  verifies("beyond.effect.proxy", "beyond.effect.not-checked", "beyond.effect.missing");
  const proxy = await startProxy({ manifests: MANIFESTS, args: ["--allow-host", "127.0.0.1"] });
  const post = async (kind: string, id: string) =>
    plainly(proxy, {
      host: HOST,
      method: "POST",
      path: `/${kind}`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, name: "ann" }),
    });
  const found = async (kind: string, id: string) => (await post(kind, id)).headers["svc-effect"];
  expect(await found("thing", "a")).toBe("held");
  const pretended = await post("pretend", "b");
  expect([pretended.status, pretended.headers["svc-effect"]]).toEqual([201, "missing"]);
  expect(await found("other", "c")).toBe("missing");
  expect(await found("blind", "d")).toBe("not checked");
  const deleted = await plainly(proxy, { host: HOST, method: "DELETE", path: "/thing/a" });
  expect(deleted.headers["svc-effect"]).toBe("missing");
  const read = await plainly(proxy, { host: HOST, path: "/thing/a" });
  expect(read.headers["svc-effect"]).toBeUndefined();
  const ended = (await proxy.records()).filter(({ event }) => event !== "intended");
  expect(ended.map(({ event, tool, detail }) => [event, tool, String(detail ?? "").split(" (")[0]])).toEqual([
    ["succeeded", "thing.create", "effect: held, checked by gateway"],
    ["effect_missing", "pretend.create", "effect: missing, checked by gateway"],
    ["uncertain", "pretend.create", "effect missing: thing.get does not show what the call reported"],
    ["effect_missing", "other.create", "effect: missing, checked by gateway"],
    ["uncertain", "other.create", "effect missing: thing.get does not show what the call reported"],
    ["succeeded", "blind.create", "effect: not checked"],
    ["effect_missing", "thing.delete", "effect: missing, checked by gateway"],
    ["uncertain", "thing.delete", "effect missing: thing.get does not show what the call reported"],
    ["succeeded", "thing.get", ""],
  ]);
});
