/**
 * Live demo behind `npm start`: a real server on the default store with example manifests, an example policy and new
 * keys, a support agent that acts on your decisions, and the web page of its shop. All its files are in `.demo/`, which
 * you can delete.
 */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { KeyManager } from "../auth/key-manager.ts";
import { packageFile } from "../child-process/package-files.ts";
import { loadSettings } from "../config/load.ts";
import { isLoopbackHost } from "../config/loopback.ts";
import { OneTimeLink } from "../console/session/one-time-link.ts";
import type { PrincipalRole } from "../govern/roles.ts";
import { systemEnv } from "../kernel/env.ts";
import { SvcError } from "../kernel/errors.ts";
import { findRun } from "../operations/documents.ts";
import { dispatchOperation } from "../operations/pipeline/dispatch.ts";
import { openRun } from "../operations/runs/runs.ts";
import { openService, type RunningService } from "../service/service.ts";
import { startServer } from "../service/start/server.ts";
import { isBusy } from "../store/journal/connection.ts";
import { openFileLock } from "../store/open.ts";
import { type CommandIo, escapeControls, processIo } from "./io.ts";
import { untilSignalled } from "./signals.ts";

const EXAMPLE = fileURLToPath(packageFile("examples/demo"));
const FOLDER = fileURLToPath(packageFile(".demo"));
const ROLES: readonly PrincipalRole[] = ["agent", "auditor", "approver", "operator", "admin"];
const AGENT = "support-agent";
/** First run of the example agent. */
const FIRST_RUN = "ticket-4817";
const nameOf = (role: PrincipalRole): string => (role === "agent" ? AGENT : `demo-${role}`);

type Keys = Record<PrincipalRole, string>;

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

/** Opens a run in advance, so that the first command to paste is already a decision. */
async function openDemoRun(service: RunningService, key: string): Promise<string> {
  const principal = await service.auth.authenticate(`Bearer ${key}`);
  const caller = { app: service, principal, signal: new AbortController().signal };
  const input = { permissions: ["crm.read", "crm.write"], reason: "a newcomer's first run" };
  return (await dispatchOperation(openRun, caller, input)).run_id;
}

/** The examples are plain modules, as a newcomer writes them. */
interface DemoModules {
  "desk.mjs": { openDesk(file: string): Desk };
  "agent.mjs": {
    work(at: AgentOptions): Promise<void>;
    followUp(at: AgentOptions & { signal: AbortSignal; say(line: string): void }): Promise<void>;
  };
  "shop.mjs": { serveShop(at: { desk: Desk; port: number; console_url: string }): Promise<Shop> };
}
interface Desk {
  begin(): void;
}
interface AgentOptions {
  url: string;
  key: string;
  desk: Desk;
}
interface Shop {
  url: string;
  stop(): Promise<void>;
}

const exampleFile = (name: string): string => join(EXAMPLE, name);
const deskFile = join(FOLDER, "desk.json");
const load = <Name extends keyof DemoModules>(name: Name): Promise<DemoModules[Name]> =>
  import(pathToFileURL(exampleFile(name)).href);

/**
 * The agent and its shop. The agent's morning happens once for a data directory. After that, and after each restart,
 * the agent waits for the decision that it still needs.
 */
class LiveStory {
  private readonly ended = new AbortController();
  private readonly service: RunningService;
  private readonly io: CommandIo;
  private followed: Promise<void> = Promise.resolve();

  constructor(service: RunningService, io: CommandIo) {
    this.service = service;
    this.io = io;
  }

  /** Returns the URL of the shop. */
  async begin(url: string, key: string): Promise<string> {
    const desk = (await load("desk.mjs")).openDesk(deskFile);
    const agent = await load("agent.mjs");
    const at = { url, key, desk };
    if ((await findRun(this.service, FIRST_RUN)) === undefined) {
      desk.begin();
      await agent.work(at);
    }
    const { serveShop } = await load("shop.mjs");
    const { port: own } = this.service.settings.listen;
    const shop = await serveShop({ desk, port: own === 0 ? 0 : own + 1, console_url: `${url}/console` });
    const { signal } = this.ended;
    signal.addEventListener("abort", () => void shop.stop(), { once: true });
    const say = (line: string) => this.io.out(escapeControls(line));
    const stopped = (error: Error) => say(`agent: stopped: ${error.message}`);
    this.followed = agent.followUp({ ...at, signal, say }).catch(stopped);
    return shop.url;
  }

  /** Waits for the agent to leave, while the server can still answer it. */
  async end(): Promise<void> {
    this.ended.abort();
    await this.followed;
  }
}

function storyLines(shop: string, link: string | null): string[] {
  const first =
    link === null ? "1. Log in to the console" : "1. Open the console (once, within ten minutes):";
  return [
    "A support agent works for a small web shop. One of its refunds waits for you.",
    "",
    first,
    ...(link === null ? [] : [`  ${link}`]),
    "2. Approve or deny the refund, and watch the agent act in the shop:",
    `  ${shop}`,
    "3. Roll back ticket-4833 or ticket-4826 in the console: the shop gets the money back.",
  ];
}

function emptyLines(link: string | null): string[] {
  return link === null ? [] : ["", "Open the console (once, within ten minutes):", `  ${link}`];
}

function welcome(io: CommandIo, url: string, keys: Keys, run: string, about: readonly string[]): void {
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
    bold("Keys of this demo (shown once):"),
    ...ROLES.map((role) => `  ${role.padEnd(9)} ${keys[role]}`),
    "",
    bold("Ask as an agent: a call in scope is allowed, another is blocked, and the trail shows both"),
    `  ${post(`/v1/runs/${run}/intents`, '{"tool":"crm.get_contact","args":{"id":"c-771"},"reason":"look a customer up"}')}`,
    `  ${post(`/v1/runs/${run}/intents`, '{"tool":"mail.send","args":{"to":"ann@example.com"},"reason":"say hello"}')}`,
    `  curl -s ${url}/v1/runs/${run}/export -H 'authorization: Bearer ${keys.auditor}'`,
    "",
    dim("Ctrl-C stops it. Its files are in .demo/: delete that directory to start over."),
  ];
  for (const line of lines) io.out(line);
}

/** Kept here for as long as this process lives, because a collected lock is released. */
const folderLock = await openFileLock(join(FOLDER, "demo.lock"));

/** Refuses a second demo, which would replace the keys that the first one printed. */
async function lockFolder(): Promise<void> {
  try {
    await folderLock.take(0);
  } catch (error) {
    if (!isBusy((error as Error).cause)) throw error;
    const message = "a demo of this clone is running: stop it with Ctrl-C in its terminal, then start again";
    throw new SvcError("conflict", message, { cause: error });
  }
}

async function demo(withStory: boolean): Promise<void> {
  const io = processIo();
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
  await lockFolder();
  const keyFile = join(FOLDER, "keys.json");
  const keys = await makeKeys(keyFile);
  const undo = [process.execPath, exampleFile("desk.mjs"), deskFile].map((word) => `'${word}'`).join(" ");
  const flags = {
    manifests: exampleFile("manifests.yaml"),
    policy: exampleFile("policy.yaml"),
    data: join(FOLDER, withStory ? "data" : "empty"),
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
  const { url } = listening;
  const story = new LiveStory(service, io);
  const login = link === undefined ? null : `${url}${link.path}`;
  const about = withStory ? storyLines(await story.begin(url, keys.agent), login) : emptyLines(login);
  welcome(io, url, keys, await openDemoRun(service, keys.agent), about);
  await untilSignalled(service);
  await story.end();
  await listening.stop();
}

try {
  await demo(!process.argv.includes("--empty"));
} catch (error) {
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  const message =
    code === "EADDRINUSE"
      ? `port ${port} is in use; choose another with PORT=8790 npm start`
      : (error as Error).message;
  process.stderr.write(`svc: ${message}\n`);
  // A server that started before its shop failed must not keep the process alive.
  process.exit(1);
}
