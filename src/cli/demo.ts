/**
 * The live demo behind `npm start`: a real server on the default store, with the example manifests and
 * policy and keys made on the spot. Everything it makes lies in `.demo/` and may be deleted.
 */
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRun } from "../app/operations/runs.ts";
import { perform } from "../app/perform.ts";
import { openService, type Service } from "../app/service.ts";
import { KeyManager } from "../auth/manage.ts";
import { loadSettings } from "../config/load.ts";
import { startServer } from "../http/start.ts";
import { systemEnv } from "../kernel/env.ts";
import type { Role } from "../model/roles.ts";
import { type Io, processIo } from "./io.ts";
import { untilSignalled } from "./signals.ts";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const ROLES: readonly Role[] = ["agent", "auditor", "approver", "operator", "admin"];

async function makeKeys(file: string): Promise<Record<Role, string>> {
  rmSync(file, { force: true });
  const manager = new KeyManager(file, { env: systemEnv, create_file: true });
  const keys = {} as Record<Role, string>;
  for (const role of ROLES) {
    const agent = role === "agent";
    const made = await manager.create(`demo-${role}`, {
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

function welcome(io: Io, url: string, keys: Record<Role, string>, run: string): void {
  const { bold, dim } = io.color;
  const post = (path: string, body: string) =>
    `curl -s ${url}${path} -H 'authorization: Bearer ${keys.agent}' -H 'content-type: application/json' -d '${body}'`;
  const lines = [
    "",
    `${bold("svc is running")} at ${url}`,
    `console       ${url}/console  (log in with the operator or admin key)`,
    `API document  ${url}/openapi.json`,
    "",
    bold("Keys of this demo (shown once):"),
    ...ROLES.map((role) => `  ${role.padEnd(9)} ${keys[role]}`),
    "",
    bold("1. Ask for a call that is in scope") + dim("  -> allow"),
    `  ${post(`/v1/runs/${run}/intents`, '{"tool":"crm.get_contact","args":{"id":"c1"},"reason":"look a customer up"}')}`,
    "",
    bold("2. Ask for one that is not") + dim("  -> block, with every reason"),
    `  ${post(`/v1/runs/${run}/intents`, '{"tool":"mail.send","args":{"to":"ann@example.com"},"reason":"say hello"}')}`,
    "",
    bold("3. Read the trail") + dim("  (hash-chained, no argument values)"),
    `  curl -s ${url}/v1/runs/${run}/export -H 'authorization: Bearer ${keys.auditor}'`,
    "",
    dim("Ctrl-C stops it. Everything it wrote lies in .demo/"),
    "",
  ];
  for (const line of lines) io.out(line);
}

async function demo(): Promise<void> {
  const io = processIo();
  const folder = join(ROOT, ".demo");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const keyFile = join(folder, "keys.json");
  const keys = await makeKeys(keyFile);
  const flags = {
    manifests: join(ROOT, "examples", "manifests"),
    policy: join(ROOT, "examples", "policy.yaml"),
    data: join(folder, "data"),
    keys: keyFile,
    console: "login",
  };
  const env = {
    ...process.env,
    SVC_ENVIRONMENT: process.env["SVC_ENVIRONMENT"] ?? "demo",
    SVC_LOG_FORMAT: "pretty",
    SVC_LOG_LEVEL: "warn",
  };
  const service = await openService(loadSettings({ flags, env, cwd: folder }), systemEnv);
  const listening = await startServer(service);
  welcome(io, listening.url, keys, await openDemoRun(service, keys.agent));
  await untilSignalled(service);
  await listening.stop();
}

try {
  await demo();
} catch (error) {
  const { code } = error as NodeJS.ErrnoException;
  const busy =
    code === "EADDRINUSE"
      ? "the port is taken; choose another with PORT=8788 npm start"
      : (error as Error).message;
  process.stderr.write(`svc: ${busy}\n`);
  process.exitCode = 1;
}
