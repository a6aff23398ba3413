/** A home with a workspace, a service and the installed hook, and the events that a client sends to it. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, onTestFinished, TestRunner } from "vitest";
import type { HookClient } from "../../src/hook/clients/clients.ts";
import { eventsOf } from "../../src/hook/clients/clients.ts";
import { hooksFile } from "../../src/hook/clients/install.ts";
import { type CliResult, type ServerProcess, startSvcServer, svc } from "./cli.ts";
import { tempDir } from "./tmp.ts";

export interface HookedPlace {
  home: string;
  shop: string;
  /** Directory of the service and of the hook's settings. */
  folder: string;
  config: string;
  server: ServerProcess;
  /** Commands in the client's settings, by event. */
  commands(): Record<string, string>;
  /** Starts the hook as the client does, and waits for its answer. */
  ask(event: object): Promise<CliResult>;
  /** The same, without waiting. */
  begin(event: object): StartedHook;
  /** Runs `svc` as the person does. */
  svc(...args: string[]): Promise<CliResult>;
  change(settings: object): void;
  approvals(): Promise<{ id: string; status: string; step?: number }[]>;
}

export interface StartedHook {
  child: ChildProcess;
  ended: Promise<CliResult>;
}

/** Through a shell, with its own environment. */
export function startHook(command: string, input: string, cwd: string): StartedHook {
  const child = spawn("sh", ["-c", command], { cwd, env: { PATH: process.env["PATH"]! } });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (err += text));
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return { child, ended: new Promise((resolve) => child.on("close", (code) => resolve({ code, out, err }))) };
}

export async function hookedPlace(client: HookClient, ...options: string[]): Promise<HookedPlace> {
  const home = realpathSync(tempDir("hooked"));
  const shop = join(home, "shop");
  mkdirSync(shop);
  const where = { cwd: shop, env: { HOME: home } };
  const made = await svc(["connect", client, "--hooks", ...options], where);
  if (made.code !== 0) throw new Error(`svc connect ended with ${made.code}: ${made.err}`);
  const folder = join(home, ".config/svc/hooks");
  const config = join(folder, "svc.config.yaml");
  const server = await startSvcServer(["--config", config], where);
  // With the test, or with the file that shares the place.
  const atEnd = TestRunner.getCurrentTest() === undefined ? afterAll : onTestFinished;
  atEnd(async () => void (await server.stop()));
  const file = join(folder, `${client}.json`);
  const change = (settings: object) =>
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...settings }));
  change({ server: server.url });
  const commands = () => {
    const { hooks } = JSON.parse(readFileSync(join(home, hooksFile(client)), "utf8"));
    return Object.fromEntries(
      Object.entries(hooks as Record<string, { command?: string; hooks?: { command: string }[] }[]>).map(
        ([event, [entry]]) => [event, entry!.command ?? entry!.hooks![0]!.command],
      ),
    );
  };
  let n = 0;
  const begin = (event: object) => {
    const name = eventsOf(client)[0]!;
    const input = { session_id: "s", cwd: shop, hook_event_name: name, tool_use_id: `t${n++}`, ...event };
    return startHook(commands()[input.hook_event_name]!, JSON.stringify(input), shop);
  };
  const cli = (...args: string[]) => svc([...args, "--config", config], where);
  return {
    home,
    shop,
    folder,
    config,
    server,
    commands,
    begin,
    ask: (event) => begin(event).ended,
    svc: cli,
    change,
    approvals: async () => JSON.parse((await cli("approvals", "list", "--json")).out || "{}").approvals ?? [],
  };
}
