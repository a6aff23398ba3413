/**
 * The live demo behind `npm start`: a real server on the default store, with example manifests, an example
 * policy, keys made on the spot, and an agent that has worked at a support desk just before. Everything it
 * makes lies in `.demo/` and may be deleted.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { perform } from "../app/door/perform.ts";
import { openRun } from "../app/operations/runs.ts";
import { openService, type Service } from "../app/wiring/service.ts";
import { KeyManager } from "../auth/manage.ts";
import { loadSettings } from "../config/load.ts";
import { isLoopbackHost } from "../config/loopback.ts";
import { OneTimeLink } from "../console/one-time-link.ts";
import { systemEnv } from "../kernel/env.ts";
import type { Role } from "../model/roles.ts";
import { packageFile } from "../process/package.ts";
import { startServer } from "../serve/server.ts";
import { type Io, processIo } from "./io.ts";
import { untilSignalled } from "./signals.ts";

const EXAMPLE = fileURLToPath(packageFile("examples/demo"));
const FOLDER = fileURLToPath(packageFile(".demo"));
const ROLES: readonly Role[] = ["agent", "auditor", "approver", "operator", "admin"];
const AGENT = "support-agent";
/** What the story begins with. */
const FIRST_RUN = "ticket-4817";
const nameOf = (role: Role): string => (role === "agent" ? AGENT : `demo-${role}`);

type Keys = Record<Role, string>;

async function makeKeys(file: string): Promise<Keys> {
  rmSync(file, { force: true });
  const manager = new KeyManager(file, { env: systemEnv, create_file: true });
  const keys = {} as Keys;
  for (const role of ROLES) {
    const agent = role === "agent";
    const made = await manager.create(nameOf(role), {
      roles: [role],
      ...(agent ? { max_permissions: ["*"], allow_observe: true } : {}),
    });
    keys[role] = made.key;
  }
  return keys;
}

/** Opened beforehand, so that the first line a newcomer pastes is already a decision. */
async function openDemoRun(service: Service, key: string): Promise<string> {
  const principal = await service.auth.authenticate(`Bearer ${key}`);
  const caller = { app: service, principal, signal: new AbortController().signal };
  const input = { permissions: ["crm.read", "crm.write"], reason: "a newcomer's first run" };
  return (await perform(openRun, caller, input)).run_id;
}

/** The desk that the agent works at, and that a rollback puts back. */
interface Desk {
  begin(): void;
  tools: Record<string, unknown>;
}
interface Example {
  openDesk(file: string): Desk;
  work(at: { url: string; key: string; tools: Desk["tools"] }): Promise<void>;
}

const exampleFile = (name: string): string => join(EXAMPLE, name);
const deskFile = join(FOLDER, "desk.json");

/** The agent's work, told once for a data folder: a restarted demo shows what became of it. */
async function tellStory(service: Service, url: string, key: string): Promise<void> {
  if ((await service.core.store.get("runs", FIRST_RUN)) !== undefined) return;
  const load = (name: string) => import(pathToFileURL(exampleFile(name)).href) as Promise<Example>;
  const desk = (await load("desk.mjs")).openDesk(deskFile);
  desk.begin();
  await (await load("agent.mjs")).work({ url, key, tools: desk.tools });
}

const STORY = [
  "",
  "An agent has worked at a support desk: it refunded, mailed and edited. A refund waits for you, a call was",
  "blocked, an outcome is unknown, and the run ticket-4826 is worth taking back.",
];

function welcome(io: Io, url: string, keys: Keys, run: string, about: readonly string[]): void {
  const { bold, dim } = io.color;
  const post = (path: string, body: string) =>
    `curl -s ${url}${path} -H 'authorization: Bearer ${keys.agent}' -H 'content-type: application/json' -d '${body}'`;
  const lines = [
    "",
    `${bold("svc is running")} at ${url}`,
    ...about,
    "",
    `console       ${url}/console  (log in with the operator or admin key)`,
    `API document  ${url}/openapi.json`,
    "",
    bold("Keys of this demo (shown once):"),
    ...ROLES.map((role) => `  ${role.padEnd(9)} ${keys[role]}`),
    "",
    bold("1. Ask for a call that is in scope") + dim("  -> allow"),
    `  ${post(`/v1/runs/${run}/intents`, '{"tool":"crm.get_contact","args":{"id":"c-771"},"reason":"look a customer up"}')}`,
    "",
    bold("2. Ask for one that is not") + dim("  -> block, with every reason"),
    `  ${post(`/v1/runs/${run}/intents`, '{"tool":"mail.send","args":{"to":"ann@example.com"},"reason":"say hello"}')}`,
    "",
    bold("3. Read the trail") + dim("  (hash-chained, no argument values)"),
    `  curl -s ${url}/v1/runs/${run}/export -H 'authorization: Bearer ${keys.auditor}'`,
    "",
    dim("The command line sees the same: node bin/svc.js runs -d .demo/data"),
    dim("Ctrl-C stops it. Everything it wrote lies in .demo/ (delete it to begin anew)"),
    "",
  ];
  for (const line of lines) io.out(line);
}

async function demo(told: boolean): Promise<void> {
  const io = processIo();
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
  const keyFile = join(FOLDER, "keys.json");
  const keys = await makeKeys(keyFile);
  const undo = [process.execPath, exampleFile("desk.mjs"), deskFile].map((word) => `'${word}'`).join(" ");
  const flags = {
    manifests: exampleFile("manifests.yaml"),
    policy: exampleFile("policy.yaml"),
    data: join(FOLDER, told ? "data" : "empty"),
    keys: keyFile,
    console: "login",
    "compensator-cmd": undo,
    "reader-cmd": undo,
  };
  const env = {
    ...process.env,
    SVC_ENVIRONMENT: process.env["SVC_ENVIRONMENT"] ?? "demo",
    SVC_LOG_FORMAT: "pretty",
    SVC_LOG_LEVEL: "warn",
  };
  const service = await openService(loadSettings({ flags, env, cwd: FOLDER }), systemEnv);
  const local = isLoopbackHost(service.settings.listen.host);
  const link = local
    ? new OneTimeLink(systemEnv, await service.auth.authenticateToken(keys.operator))
    : undefined;
  const listening = await startServer(service, { link });
  if (told) await tellStory(service, listening.url, keys.agent);
  const about = told ? [...STORY] : [];
  if (link !== undefined)
    about.push("", "Open the console (once, within ten minutes):", `  ${listening.url}${link.path}`);
  welcome(io, listening.url, keys, await openDemoRun(service, keys.agent), about);
  await untilSignalled(service);
  await listening.stop();
}

try {
  await demo(!process.argv.includes("--empty"));
} catch (error) {
  const { code } = error as NodeJS.ErrnoException;
  const busy =
    code === "EADDRINUSE"
      ? "the port is taken; choose another with PORT=8788 npm start"
      : (error as Error).message;
  process.stderr.write(`svc: ${busy}\n`);
  process.exitCode = 1;
}
