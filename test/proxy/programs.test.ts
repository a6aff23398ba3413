/**
 * Real programs inside `svc run`, against a server that answers as their registries do. `npm run prove -- proxy` adds
 * those that need more than a bare machine.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import aws4 from "aws4";
import { expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { type SeenRequest, selfSigned, upstream } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

await program("bubblewrap");
await program("curl");
await program("openssl");
await program("python3");
/** Go's programs reach `localhost` without any proxy, so one service has another name. */
const NAME = "github.test";
const TLS = selfSigned(["localhost", NAME]);
const NAMES = join(tempDir("names"), "names.mjs");
writeFileSync(
  NAMES,
  `import dns from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";
const { lookup } = dns;
dns.lookup = (host, ...more) => lookup(host === "${NAME}" ? "localhost" : host, ...more);
syncBuiltinESMExports();
`,
);
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

/** A service that answers only calls with its real credential. */
const service = (isOurs: (request: SeenRequest) => boolean, answer: (request: SeenRequest) => string) =>
  upstream((request, response) => {
    response.writeHead(isOurs(request) ? 200 : 401, {
      "content-type": request.headers["x-amz-date"] === undefined ? "application/json" : "text/xml",
    });
    response.end(isOurs(request) ? answer(request) : "{}");
  }, TLS);
const bearer = ({ headers }: SeenRequest) =>
  [`Bearer ${SECRET}`, `token ${SECRET}`].includes(headers.authorization ?? "");
const AWS_KEYS = { accessKeyId: "AKIAREALREALREAL0001", secretAccessKey: SECRET };

const titled = (name: string) => name.replace(/(?<![a-z0-9])[a-z]/g, (letter) => letter.toUpperCase());

/** Whether the request is signed with the real key. */
function isSigned({ method, url, headers, body }: SeenRequest): boolean {
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? "")?.[1]?.split(";") ?? [];
  const signed = Object.fromEntries(names.map((name) => [titled(name), String(headers[name])]));
  const again = aws4.sign(
    { host: HOSTS.aws, method, path: url, headers: signed, region: "eu-west-1", service: "sqs" },
    AWS_KEYS,
  );
  const isWhole = headers["x-amz-content-sha256"] === sha256Hex(Buffer.from(body, "latin1"));
  return isWhole && again.headers?.["Authorization"] === headers.authorization;
}

const github = await service(bearer, ({ method, body }) =>
  JSON.stringify(method === "POST" ? { number: 7, ...JSON.parse(body) } : { login: "ann" }),
);
const stripe = await service(bearer, ({ body }) => JSON.stringify({ id: "cus_7", object: "customer", body }));
const aws = await service(
  isSigned,
  () =>
    "<SendMessageResponse><SendMessageResult><MessageId>message-7</MessageId></SendMessageResult></SendMessageResponse>",
);
const HOSTS = {
  registry: HOST,
  github: `${NAME}:${github.port}`,
  stripe: `localhost:${stripe.port}`,
  aws: `localhost:${aws.port}`,
};
const MANIFESTS = `
- {tool: registry.read, effect: read, permission: all, http: {host: "${HOST}", method: GET, path: "/{name}"}}
- {tool: registry.list, effect: read, permission: all, http: {host: "${HOST}", method: GET, path: "/{name}/"}}
- {tool: github.user, effect: read, permission: all, http: {host: "${HOSTS.github}", method: GET, path: /api/v3/user}}
- {tool: github.issue, effect: irreversible, permission: all, http: {host: "${HOSTS.github}", method: POST, path: "/api/v3/repos/{owner}/{repository}/issues"}}
- {tool: stripe.customer, effect: irreversible, permission: all, http: {host: "${HOSTS.stripe}", method: POST, path: /v1/customers, body: form}}
- {tool: sqs.send, effect: irreversible, permission: all, http: {host: "${HOSTS.aws}", method: POST, path: /, body: form}}
`;
const sent = (prefix: string) => `header: {name: Authorization, prefix: "${prefix} "}`;
const CREDENTIALS = `
  - {name: registry, hosts: ["${HOST}"], ${sent("Bearer")}, from: {env: TOKEN}}
  - {name: github, hosts: ["${HOSTS.github}"], ${sent("token")}, from: {env: GH_ENTERPRISE_TOKEN}}
  - {name: stripe, hosts: ["${HOSTS.stripe}"], ${sent("Bearer")}, from: {env: STRIPE_KEY}}
  - {name: aws, hosts: ["${HOSTS.aws}"], aws_sigv4: {region: eu-west-1, service: sqs}, from: {env: AWS_PAIR}}
`;

interface RealProgram {
  readonly name: string;
  readonly script: string;
  readonly says: string;
  /** Call that must be recorded; reads of the registry otherwise. */
  readonly tool?: string;
  /** Program to install. */
  readonly needs?: Parameters<typeof program>[0];
  /** Packages of npm, installed into the workspace. */
  readonly packages?: readonly string[];
  /** Files of the workspace. */
  readonly files?: Readonly<Record<string, string>>;
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
  {
    name: "a Node script with undici's proxy agent",
    script: "node fetch.mjs",
    files: {
      "fetch.mjs": `import { EnvHttpProxyAgent, fetch } from "undici";
console.log(await (await fetch("${URL}", { dispatcher: new EnvHttpProxyAgent() })).text());`,
    },
    says: GOT.replace(" ", ""),
  },
  {
    name: "fetch of Node 24",
    script: `node_modules/node/bin/node -e 'fetch("${URL}").then((r) => r.text()).then(console.log)'`,
    packages: ["node@24"],
    says: GOT.replace(" ", ""),
    more: true,
  },
  {
    name: "GitHub's command line",
    script: `export GH_HOST=${HOSTS.github}; gh api user && gh api repos/ann/shop/issues -f title=Broken`,
    needs: "gh",
    says: '"title":"Broken"',
    tool: "github.issue",
    more: true,
  },
  {
    name: "Amazon's command line",
    script: `/usr/bin/aws sqs send-message --endpoint-url https://${HOSTS.aws} --queue-url https://${HOSTS.aws}/1234/jobs --message-body hello`,
    needs: "awscli",
    says: "message-7",
    tool: "sqs.send",
    more: true,
  },
  {
    name: "Stripe's SDK",
    script: "node stripe.mjs",
    packages: ["stripe@23.1.0", "https-proxy-agent@7"],
    files: {
      "stripe.mjs": `import { HttpsProxyAgent } from "https-proxy-agent";
import Stripe from "stripe";
const httpAgent = new HttpsProxyAgent(process.env.HTTPS_PROXY);
const stripe = new Stripe(process.env.STRIPE_KEY, { host: "localhost", port: ${stripe.port}, httpAgent });
console.log(JSON.stringify(await stripe.customers.create({ email: "ann@example.com" })));`,
    },
    says: "cus_7",
    tool: "stripe.customer",
    more: true,
  },
  { name: "wget", script: `wget -qO- ${URL}`, says: GOT.replace(" ", ""), more: true },
];
const isAll = process.env["SVC_PROVE_PROXY"] === "all";

const SERVERS = [packages, github, stripe, aws];
const seen = () => SERVERS.flatMap((server) => server.seen);

it.each(PROGRAMS.filter(({ more }) => isAll || more !== true))("$name", async (real) => {
  verifies("beyond.run.programs");
  if (real.needs !== undefined) await program(real.needs);
  const home = tempDir("programs");
  const workspace = join(home, "work");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "package.json"), '{"private": true}');
  for (const [name, text] of Object.entries(real.files ?? {})) writeFileSync(join(workspace, name), text);
  const undici = join(import.meta.dirname, "../../node_modules/undici");
  cpSync(undici, join(workspace, "node_modules/undici"), { recursive: true });
  if (real.packages !== undefined) {
    const args = ["install", "--no-audit", "--no-fund", "--prefer-offline", ...real.packages];
    const { status, stderr } = spawnSync("npm", args, { cwd: workspace, encoding: "utf8" });
    expect(status, stderr).toBe(0);
  }
  writeFileSync(join(home, "manifests.yaml"), MANIFESTS);
  const config = join(home, "svc.config.yaml");
  writeFileSync(
    config,
    `manifests: manifests.yaml\ndata: data\nallow_hosts: [localhost, ${NAME}]\ncredentials:${CREDENTIALS}`,
  );
  for (const server of SERVERS) server.seen.length = 0;
  const env = {
    HOME: home,
    TOKEN: SECRET,
    GH_ENTERPRISE_TOKEN: SECRET,
    STRIPE_KEY: SECRET,
    AWS_PAIR: `${AWS_KEYS.accessKeyId}:${SECRET}`,
    NODE_EXTRA_CA_CERTS: TLS.file,
    NODE_OPTIONS: `--import ${NAMES}`,
  };
  const { out, err } = await svc(["run", "--config", config, "--", "bash", "-c", real.script], {
    cwd: workspace,
    env,
  });
  expect(out, err).toContain(real.says);
  expect(out + err).not.toContain(SECRET);
  expect(seen().length).toBeGreaterThan(0);
  const isOurs = (request: SeenRequest) => bearer(request) || isSigned(request);
  expect(seen().every(isOurs)).toBe(true);
  const { out: records } = await svc(["export", "--config", config], { env });
  const tools = records
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event: string; tool?: string })
    .filter(({ event }) => event === "succeeded")
    .map(({ tool }) => tool);
  expect(tools).toContain(real.tool ?? (real.name === "pip" ? "registry.list" : "registry.read"));
});
