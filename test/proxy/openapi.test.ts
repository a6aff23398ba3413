/** `svc init` with the description of an HTTP API: the drafts load, and their undos work through the proxy. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { selfSigned, startProxy, throughTunnel, upstream } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

await program("openssl");
const TLS = selfSigned(["localhost"]);
const pets = new Map<string, unknown>([["old", { tag: "cat" }]]);
const api = await upstream(({ method, url, body }, response) => {
  const id = url.split("/")[3] ?? "";
  const json = (status: number, value: unknown) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (method === "POST") {
    pets.set("new", JSON.parse(body));
    return json(201, { petId: "new" });
  }
  if (method === "PUT") pets.set(id, JSON.parse(body));
  if (method === "DELETE") return json(pets.delete(id) ? 200 : 404, {});
  return json(pets.has(id) ? 200 : 404, pets.get(id) ?? {});
}, TLS);
const HOST = `localhost:${api.port}`;
const one = { parameters: [{ name: "petId", in: "path" }] };
const DOCUMENT = {
  openapi: "3.0.3",
  info: { title: "Pet Store" },
  servers: [{ url: "https://{place}/v1", variables: { place: { default: HOST } } }],
  components: { schemas: { Pet: { properties: { petId: { type: "string" }, tag: { type: "string" } } } } },
  paths: {
    "/pets": {
      get: { operationId: "listPets" },
      post: {
        operationId: "createPet",
        responses: {
          201: { content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } } },
        },
      },
    },
    "/pets/{petId}": {
      ...one,
      get: { operationId: "getPet" },
      put: { operationId: "set pet" },
      delete: { operationId: "deletePet" },
    },
    "/pets/mine": { get: { operationId: "myPet" } },
    "/pets/{pet-id}/photo": { put: { requestBody: { content: { "image/png": {} } } } },
    "/mail": { post: { operationId: "sendMail\n- tool: evil" } },
  },
};

it("drafts http manifests whose undos work", async () => {
  verifies("beyond.openapi.drafts");
  const folder = tempDir("openapi");
  writeFileSync(join(folder, "api.json"), JSON.stringify(DOCUMENT));
  const { code, out, err } = await svc(["init", "--from", "api.json"], { cwd: folder });
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("7 tools: 2 read, 2 with a proposed undo, 3 irreversible, 1 left out");
  const text = readFileSync(join(folder, "manifests/pet-store.yaml"), "utf8");
  expect(text).toContain("# left out: GET /v1/pets/mine");
  // The drafted policy asks before any other host is reached.
  const { rules } = parse(readFileSync(join(folder, "policy.yaml"), "utf8"));
  const asking = { match: { tool: "net.connect" }, action: "require_approval" };
  expect(rules).toContainEqual(expect.objectContaining(asking));
  const { all, warnings } = readManifests([{ file: "m", text }]);
  expect(warnings).toEqual([]);
  const named = Object.fromEntries(all.map((manifest) => [manifest.tool, manifest]));
  expect(Object.fromEntries(all.map(({ tool, effect }) => [tool, effect]))).toEqual({
    "net.connect": "irreversible",
    "pet-store.listPets": "read",
    "pet-store.createPet": "compensable",
    "pet-store.getPet": "read",
    "pet-store.set_pet": "reversible",
    "pet-store.deletePet": "irreversible",
    "pet-store.put_pets_pet-id_photo": "irreversible",
    "pet-store.sendMail_-_tool_evil": "irreversible",
  });
  expect(named["pet-store.createPet"]!.compensation).toMatchObject({
    tool: "pet-store.deletePet",
    args: { petId: "$result.body.petId" },
  });
  expect(named["pet-store.put_pets_pet-id_photo"]!.http).toMatchObject({
    path: "/v1/pets/{pet_id}/photo",
    body: "opaque",
  });
  for (const line of text.split("\n"))
    if (
      /^ {2}(?:effect|compensation|before|verification):/.test(line) &&
      !/permission|net\.connect/.test(line)
    )
      if (!text.slice(0, text.indexOf(line)).endsWith("- tool: net.connect\n"))
        expect(line).toContain("# guess:");

  const proxy = await startProxy({
    manifests: text.replaceAll("lifecycle: draft", "lifecycle: approved"),
    config: "allow_hosts: [localhost]\n",
    env: { NODE_EXTRA_CA_CERTS: TLS.file },
  });
  const ask = (method: string, path: string, value: unknown) =>
    throughTunnel(proxy, {
      host: HOST,
      method,
      path,
      body: JSON.stringify(value),
      headers: { "content-type": "application/json" },
    });
  expect((await ask("POST", "/v1/pets", { tag: "dog" })).status).toBe(201);
  expect((await ask("PUT", "/v1/pets/old", { tag: "bird" })).status).toBe(200);
  const run = (await proxy.records()).find(({ run_id }) => run_id !== undefined)!["run_id"] as string;
  const done = JSON.parse((await proxy.svc("rollback", run, "--json")).out);
  expect(done).toMatchObject({ complete: true, compensated: [1, 0] });
  expect([...pets]).toEqual([["old", { tag: "cat" }]]);
});

it("drafts from a URL, which relative servers start from", async () => {
  verifies("beyond.openapi.drafts");
  const folder = tempDir("openapi");
  const document = { ...DOCUMENT, servers: [{ url: "/v2" }] };
  const site = await upstream((_, response) => response.end(JSON.stringify(document)));
  const from = `http://127.0.0.1:${site.port}/docs/api.json`;
  const { code, err } = await svc(["init", "--from", from], { cwd: folder });
  expect([code, err]).toEqual([0, ""]);
  const text = readFileSync(join(folder, "manifests/pet-store.yaml"), "utf8");
  const { all } = readManifests([{ file: "m", text }]);
  expect(all.find(({ tool }) => tool === "pet-store.listPets")!.http).toMatchObject({
    scheme: "http",
    host: `127.0.0.1:${site.port}`,
    path: "/v2/pets",
  });
});

it("refuses documents that are not a description", async () => {
  verifies("beyond.openapi.drafts");
  const folder = tempDir("openapi");
  writeFileSync(join(folder, "api.yaml"), "a: 1\n");
  const { code, err } = await svc(["init", "--from", "api.yaml"], { cwd: folder });
  expect([code, err]).toEqual([1, expect.stringContaining("not an OpenAPI document")]);
});
