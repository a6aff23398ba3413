/**
 * The gateway in the role of an OAuth client, for the conformance suite: `<this file> <url of its tool server>`. An
 * agent calls the tools behind the gateway, and an admin consents in a browser without a screen.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { loadSettings } from "../../../src/config/load.ts";
import { systemEnv } from "../../../src/kernel/env.ts";
import { sha256Hex } from "../../../src/kernel/hash.ts";
import { openService } from "../../../src/service/service.ts";
import { startHttpGateway } from "../../../src/service/start/gateway.ts";
import { MemoryStore } from "../../../src/store/memory/store.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { lineSink } from "../../../src/telemetry/sink.ts";
import { Client as Browser } from "../../console/support/client.ts";
import { freePort } from "../../support/ports.ts";

const CONSENTS = 3;
/** The document that the suite expects as the client id, instead of the one that the gateway serves. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";

const url = process.argv.at(-1)!;
const given = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), "conformance-client-"));
const port = await freePort();
const origin = `http://127.0.0.1:${port}`;

/** The issuer of a scenario with a registered client, as an operator would look it up. */
async function configuredClient(): Promise<Record<string, string>> {
  const { client_secret } = given;
  const isDocument = process.env["MCP_CONFORMANCE_SCENARIO"] === "auth/basic-cimd";
  const client_id = isDocument ? DOCUMENT : given["client_id"];
  if (client_id === undefined) return {};
  const { origin: at } = new URL(url);
  const metadata = await fetch(`${at}/.well-known/oauth-protected-resource/mcp`);
  const { authorization_servers } = (await metadata.json()) as { authorization_servers: [string] };
  return {
    issuer: authorization_servers[0],
    client_id,
    ...(client_secret === undefined ? {} : { client_secret }),
  };
}

async function startGateway() {
  const keys = ["agent", "admin"].map((name) => ({
    name,
    role: name,
    max_permissions: ["*"],
    allow_observe: true,
    key_sha256: sha256Hex(name),
  }));
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
  writeFileSync(join(folder, "token.key"), randomBytes(32));
  writeFileSync(join(folder, "manifests.yaml"), "[]");
  const config = {
    manifests: "manifests.yaml",
    auth: { keys: "keys.json" },
    mode: "observe",
    listen: { host: "127.0.0.1", port },
    console: "login",
    console_url: origin,
    token_key: "token.key",
    upstreams: [{ name: "suite", url, auth: { type: "oauth", ...(await configuredClient()) } }],
  };
  writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify(config));
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const log = createLogger(
    { ...settings.log, level: "debug" },
    { sink: lineSink((line) => process.stderr.write(line)) },
  );
  return startHttpGateway(await openService(settings, systemEnv, { log, store: new MemoryStore() }));
}

/** Follows the issuer to the end, and comes back. Returns whether the page says that it is connected. */
async function consent(browser: Browser, link: string): Promise<boolean> {
  const { pathname } = new URL(link);
  const { text, status } = await browser.post(pathname, { csrf: await browser.csrf(pathname) });
  const address = /<a href="([^"]+)">Continue to/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  if (address === undefined) {
    console.error(`no address of the issuer: ${status} ${text}`);
    return false;
  }
  let at = address;
  for (let hop = 0; hop < 5; hop++) {
    const response = await fetch(at, { redirect: "manual" });
    at = new URL(response.headers.get("location") ?? "about:blank", at).href;
    const { pathname: path, search } = new URL(at);
    if (!path.startsWith("/oauth/callback")) continue;
    const back = await browser.get(path + search);
    console.error(`callback: ${back.status}`);
    return back.status === 200;
  }
  return false;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
async function callOnce(agent: Client, name: string): Promise<any> {
  return agent.callTool({ name, arguments: {} }).catch((error: unknown) => ({ error: String(error) }));
}

const running = await startGateway();
try {
  const agent = new Client({ name: "agent", version: "1" });
  const requestInit = { headers: { authorization: "Bearer agent" } };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }));
  const browser = new Browser(origin);
  await browser.logIn("admin");
  const ask = async () => {
    const asked = await agent.callTool({ name: "svc.connect_upstream", arguments: { upstream: "suite" } });
    return (asked.structuredContent as { url: string }).url;
  };
  let link: string | undefined = await ask();
  let done = false;
  for (let n = 0; n < CONSENTS && link !== undefined; n++) {
    if (!(await consent(browser, link))) break;
    const { tools } = await agent.listTools();
    const names = tools.map(({ name }) => name).filter((name) => !name.startsWith("svc."));
    const results = [];
    // A call that lacks a scope fails, and the next one gets a link.
    for (const name of names) {
      const first = await callOnce(agent, name);
      results.push(first.isError === true ? await callOnce(agent, name) : first);
    }
    console.error(JSON.stringify(results).slice(0, 1_000));
    done =
      results.length > 0 && results.every(({ isError, error }) => isError !== true && error === undefined);
    const links = results.map((result) => result._meta?.["svc/connect_url"]);
    link = names.length === 0 ? await ask() : links.find((one) => one !== undefined);
  }
  if (!done) process.exitCode = 1;
  await agent.close();
} finally {
  await running.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
