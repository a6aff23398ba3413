/**
 * Makes the pictures of undo in the documentation (a conflict, the next undo to close, drills, a containment) with the
 * real filesystem server behind a gateway. By hand: `npx tsx test/console/undo-pictures.ts [folder]`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Page } from "playwright-core";
import { loadSettings } from "../../src/config/load.ts";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openService } from "../../src/service/service.ts";
import { startHttpGateway } from "../../src/service/start/gateway.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { launchBrowser } from "../support/browser.ts";
import { until } from "../support/until.ts";

const OUT = process.argv[2] ?? fileURLToPath(new URL("../../docs/images", import.meta.url));
const SERVER = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", import.meta.url),
);

const folder = mkdtempSync(join(tmpdir(), "svc-pictures-"));
const work = join(folder, "handbook");
const at = (name: string) => join(work, name);
const GUIDE = "# Refunds\n\nAnswer within two days.\nUp to 200 EUR: refund at once.\nAbove: ask finance.\n";
const NOTES = "# Release 4.2\n\n- Faster search\n- Dark mode\n";

const undo = (more = "") => `
  before: {tool: files.read_text_file, args: {path: $args.path}}
  compensation: {tool: files.write_file, kind: inverse, args: {path: $args.path, content: $before.content}${more}}
  verification: {tool: files.read_text_file, args: {path: $args.path}, expect: {content: $before.content}}`;
const FILES: Record<string, string> = {
  "handbook/refunds.md": GUIDE,
  "handbook/release.md": NOTES,
  "handbook/drill.md": "for drills\n",
  "evidence.key": newKeyPair().private_pem,
  "policy.yaml": "version: 1\n",
  "manifests.yaml": `
- {tool: files.read_text_file, effect: read, permission: files.read}
- {tool: files.get_file_info, effect: read, permission: files.read}
- tool: files.write_file
  effect: reversible
  permission: files.write${undo(", until: 8h")}
  drill: {args: {path: ${at("drill.md")}, content: drilled}}
- tool: files.edit_file
  effect: reversible
  permission: files.write${undo()}
  drill: {args: {path: ${at("drill.md")}, edits: [{oldText: for, newText: of}]}}
- tool: files.move_file
  effect: reversible
  permission: files.write
  compensation: {tool: files.move_file, kind: inverse, args: {source: $args.destination, destination: $args.source}}
  verification: {tool: files.get_file_info, args: {path: $args.source}, expect: {}}
  drill: {args: {source: ${at("drill.md")}, destination: ${at("moved.md")}}}
- tool: files.create_directory
  effect: compensable
  permission: files.write
  compensation: {tool: files.get_file_info, args: {path: $args.path}, residue: [the folder stays]}
  verification: {tool: files.get_file_info, args: {path: $args.path}, expect: {gone: true}, retries: 0}
  drill: {args: {path: ${at("archive")}}}
`,
  "keys.json": JSON.stringify(
    [
      { name: "handbook-bot", role: "agent", max_permissions: ["*"] },
      { name: "tom.ops", role: "operator" },
      { name: "noor.admin", role: "admin" },
    ].map((entry) => ({ ...entry, key_sha256: sha256Hex(entry.name) })),
  ),
  "svc.config.yaml": `
manifests: manifests.yaml
policy: policy.yaml
auth: {keys: keys.json}
console: login
environment: staging
drills: {environments: [staging]}
signing_key: evidence.key
data: data
listen: {host: 127.0.0.1, port: 0}
upstreams: [{name: files, command: node, args: [${SERVER}, ${work}], namespace: true}]
`,
};

async function started() {
  mkdirSync(work, { recursive: true });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text, { mode: 0o600 });
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const log = createLogger(settings.log, { sink: lineSink(() => {}) });
  const service = await openService(settings, systemEnv, { log, store: new MemoryStore() });
  return startHttpGateway(service, { patience_ms: 60_000 });
}

async function api(url: string, key: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const asked = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`${url}/v1${path}`, { headers, ...asked });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely
  return (await answer.json()) as any;
}

/** The agent's afternoon, and what a colleague wrote in between. */
async function agentWorks(url: string): Promise<void> {
  const client = new Client({ name: "handbook-bot", version: "1" });
  const headers = { authorization: "Bearer handbook-bot", "svc-run-id": "handbook-7" };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
  );
  const call = (name: string, args: Record<string, unknown>) =>
    client.callTool({ name: `files.${name}`, arguments: args });
  const edits = [{ oldText: "200 EUR: refund at once", newText: "900 EUR: refund at once" }];
  await call("edit_file", { path: at("refunds.md"), edits });
  await call("write_file", { path: at("release.md"), content: `${NOTES}- Exports to PDF\n` });
  await call("move_file", { source: at("drill.md"), destination: at("old.md") });
  writeFileSync(at("refunds.md"), GUIDE.replace("200 EUR", "900 EUR").replace("two days", "one day"));
  await client.close();
}

async function picture(page: Page, path: string, name: string, selector?: string): Promise<void> {
  await page.goto(path);
  // A temporary folder says nothing to a reader.
  await page.locator("main").evaluate((main, here) => {
    main.innerHTML = main.innerHTML.replaceAll(here, "/srv/shop");
  }, folder);
  for (const summary of await page.locator(".conflict summary").all()) await summary.click();
  const shown = selector === undefined ? page : page.locator(selector).first();
  await shown.screenshot({ path: join(OUT, `${name}.png`) });
}

async function loggedIn(page: Page, url: string, key: string): Promise<void> {
  await page.context().clearCookies();
  await page.goto(`${url}/console/login`);
  await page.fill("input[name=credential]", key);
  await page.click("button[type=submit]");
}

const gateway = await started();
const browser = await launchBrowser();
try {
  const { url } = gateway;
  const page = await browser.newPage({ viewport: { width: 1320, height: 900 }, locale: "en-GB" });
  await api(url, "tom.ops", "/drills", { upstream: "files" });
  await until(async () => (await api(url, "tom.ops", "/drills")).drills.length === 4, "the drills");
  await agentWorks(url);
  await loggedIn(page, url, "tom.ops");
  await picture(page, `${url}/console/drills`, "drills");
  await picture(page, `${url}/console`, "horizon", ".tiles");
  await picture(page, `${url}/console/runs/handbook-7`, "conflict", "#rollback");
  const body = {
    actor: "handbook-bot",
    reason: "it raises limits that nobody asked it to raise",
    confirm: true,
  };
  const { job } = await api(url, "noor.admin", "/contain", body);
  await until(
    async () => (await api(url, "noor.admin", `/contain/${job.id}`)).job.state !== "running",
    "the job",
  );
  await loggedIn(page, url, "noor.admin");
  await picture(page, `${url}/console/contain/${job.id}`, "containment");
} finally {
  await browser.close();
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
}
