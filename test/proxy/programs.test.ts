/**
 * Real programs inside `svc run`, against a server that answers as their registries do. `npm run prove -- proxy` adds
 * those that need more than a bare machine.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { selfSigned, upstream } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

await program("bubblewrap");
await program("curl");
await program("openssl");
await program("python3");
const TLS = selfSigned(["localhost"]);
const SECRET = "program-secret-4711";
const packages = await upstream(({ url, headers }, response) => {
  const isOurs = headers.authorization === `Bearer ${SECRET}`;
  const name = url.split("/").pop()!;
  response.writeHead(isOurs ? 200 : 401, { "content-type": "application/json" });
  response.end(
    JSON.stringify({
      name,
      token: headers.authorization,
      "dist-tags": { latest: "1.2.3" },
      versions: { "1.2.3": { name, version: "1.2.3", dist: {} } },
    }),
  );
}, TLS);
const HOST = `localhost:${packages.port}`;
const URL = `https://${HOST}/thing`;

interface RealProgram {
  readonly name: string;
  readonly script: string;
  readonly says: string;
  /** In `npm run prove -- proxy` alone. */
  readonly more?: true;
}

const GOT = '"token": "********"';
const PROGRAMS: readonly RealProgram[] = [
  { name: "curl", script: `curl -sS ${URL}`, says: GOT.replace(" ", "") },
  {
    name: "Python's urllib",
    script: `python3 -c 'import urllib.request as u, json; print(json.dumps(json.load(u.urlopen("${URL}"))))'`,
    says: GOT,
  },
  {
    name: "npm",
    script: `npm view thing version --registry https://${HOST}/ --cache /tmp/npm`,
    says: "1.2.3",
  },
  {
    name: "requests",
    script: `python3 -c 'from pip._vendor import requests; print(requests.get("${URL}").text)'`,
    says: GOT.replace(" ", ""),
    more: true,
  },
  {
    name: "pip",
    script: `pip download --no-deps -d /tmp/p --index-url https://${HOST}/ thing 2>&1 | tail -n 3`,
    says: "No matching distribution",
    more: true,
  },
  { name: "wget", script: `wget -qO- ${URL}`, says: GOT.replace(" ", ""), more: true },
];
const isAll = process.env["SVC_PROVE_PROXY"] === "all";

it.each(PROGRAMS.filter(({ more }) => isAll || more !== true))("$name", async ({ script, says }) => {
  verifies("beyond.run.programs");
  const home = tempDir("programs");
  const workspace = join(home, "work");
  mkdirSync(workspace);
  writeFileSync(
    join(home, "manifests.yaml"),
    `- {tool: registry.read, effect: read, permission: registry, http: {host: "${HOST}", method: GET, path: "/{name}"}}
- {tool: registry.list, effect: read, permission: registry, http: {host: "${HOST}", method: GET, path: "/{name}/"}}
`,
  );
  const config = join(home, "svc.config.yaml");
  writeFileSync(
    config,
    `manifests: manifests.yaml
data: data
allow_hosts: [localhost]
credentials: [{name: registry, hosts: ["${HOST}"], header: {name: Authorization, prefix: "Bearer "}, from: {env: TOKEN}}]
`,
  );
  const before = packages.seen.length;
  const { out, err } = await svc(["run", "--config", config, "--", "bash", "-c", script], {
    cwd: workspace,
    env: { HOME: home, TOKEN: SECRET, NODE_EXTRA_CA_CERTS: TLS.file },
  });
  expect(out, err).toContain(says);
  expect(out + err).not.toContain(SECRET);
  expect(
    packages.seen.slice(before).every(({ headers }) => headers.authorization === `Bearer ${SECRET}`),
  ).toBe(true);
  expect(packages.seen.length).toBeGreaterThan(before);
});
