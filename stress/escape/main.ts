/**
 * `npm run escape [-- --launch "<command>"]`: tries to get out of `svc run`, or out of the sandbox that the command
 * starts. Prints a table of ways and results. Exits with 1 if one got out.
 */
import { spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { hostname, networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ESCAPE_WAYS, type EscapeWay } from "./ways.ts";

export interface TriedWay {
  readonly group: string;
  readonly way: string;
  readonly result: "held" | "ESCAPED";
}

export interface EscapeReport {
  readonly tried: TriedWay[];
  /** Effects seen outside: connections, changed files, files that would run. */
  readonly outside: string[];
  readonly code: number | null;
  readonly output: string;
}

const GIT_CONFIG = "[core]\n\trepositoryformatversion = 0\n\thooksPath = tools/hooks\n";
const HOOK = "#!/bin/sh\nexit 0\n";
const SET_ID = 0o6000;

/** The compiled program lies elsewhere; its sources do not. */
const source = (path: string): string =>
  existsSync(join(import.meta.dirname, path))
    ? join(import.meta.dirname, path)
    : join(process.cwd(), "stress/escape", path);

/** Tries all ways from inside the sandbox that `launch` starts with a command behind it. */
export async function tryAllWays(
  launch: (workspace: string) => readonly string[],
  extra: Record<string, string> = {},
  ways: readonly EscapeWay[] = ESCAPE_WAYS,
) {
  const place = mkdtempSync(join(tmpdir(), "escape-"));
  const [home, outside] = [join(place, "home"), join(place, "outside")];
  const workspace = join(home, "work");
  const servers: Server[] = [];
  const seen: string[] = [];
  const outsider = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", "escape-outside"], {
    stdio: "ignore",
  });
  try {
    prepareFiles(place, home, outside, workspace);
    const port = await listen(servers, seen, "a TCP connection", { port: 0, host: "0.0.0.0" });
    await listen(servers, seen, "the socket in the workspace", { path: join(workspace, "workspace.sock") });
    await listen(servers, seen, "the socket in the home directory", { path: join(home, "home.sock") });
    await listen(servers, seen, "the socket outside", { path: join(outside, "outside.sock") });
    await listen(servers, seen, "the abstract socket", { path: "\0svc-escape" });
    const env = {
      OUT: outside,
      REAL: home,
      PORT: String(port),
      ADDRESS: machineAddress(),
      PID: String(outsider.pid),
      MACHINE: hostname(),
    };
    writeFileSync(join(workspace, "ways.json"), JSON.stringify({ ways, env }));
    cpSync(source("inside.mjs"), join(workspace, "inside.mjs"));
    const words = [...launch(workspace), "node", "inside.mjs", "ways.json"];
    const { code, output, errors } = await runOutside(words, workspace, { ...extra, HOME: home });
    const tried = output
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as TriedWay);
    return {
      tried,
      outside: [...seen, ...changesOutside(home, outside, workspace, outsider)],
      code,
      output: errors,
    };
  } finally {
    for (const server of servers) server.close();
    outsider.kill("SIGKILL");
    rmSync(place, { recursive: true, force: true });
  }
}

function prepareFiles(place: string, home: string, outside: string, workspace: string): void {
  for (const folder of [
    home,
    outside,
    workspace,
    join(workspace, "sub"),
    join(home, ".ssh"),
    join(home, ".aws"),
  ])
    mkdirSync(folder, { recursive: true });
  const write = (path: string, text: string) => writeFileSync(path, text);
  for (const path of [
    join(place, "canary"),
    join(outside, "canary"),
    join(home, ".ssh/id_ed25519"),
    join(home, ".aws/credentials"),
    join(workspace, ".env"),
    join(workspace, "sub/.env.local"),
  ])
    write(path, "canary\n");
  write(join(home, ".bashrc"), "# escape-marker\n");
  for (const folder of [".git/hooks", ".git/info", ".git/refs", ".git/objects"])
    mkdirSync(join(workspace, folder), { recursive: true });
  write(join(workspace, ".git/HEAD"), "ref: refs/heads/main\n");
  write(join(workspace, ".git/config"), GIT_CONFIG);
  for (const folder of ["scripts", "tools/hooks"]) mkdirSync(join(workspace, folder), { recursive: true });
  write(join(workspace, "scripts/pre-commit"), HOOK);
  symlinkSync("../../scripts/pre-commit", join(workspace, ".git/hooks/pre-commit"));
  symlinkSync(outside, join(workspace, "to-outside"));
  symlinkSync(join(outside, "canary"), join(workspace, "to-file"));
  symlinkSync(join(outside, "made"), join(workspace, "to-nothing"));
}

async function listen(servers: Server[], seen: string[], what: string, where: object): Promise<number> {
  const server = createServer((socket) => {
    seen.push(`${what} was reached`);
    socket.on("error", () => {});
    socket.end("x");
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(where, resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function machineAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? "127.0.0.2";
}

function runOutside(words: readonly string[], cwd: string, env: Record<string, string>) {
  const [program, ...args] = words;
  const child = spawn(program!, args, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", CANARY: "canary", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (output += chunk));
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk));
  return new Promise<{ code: number | null; output: string; errors: string }>((resolve) => {
    child.once("close", (code) => resolve({ code, output, errors }));
  });
}

/** What a person would find outside afterwards. */
function changesOutside(
  home: string,
  outside: string,
  workspace: string,
  outsider: { exitCode: number | null },
): string[] {
  const found: string[] = [];
  const same = (path: string, text: string) => {
    if (!existsSync(path) || readFileSync(path, "utf8") !== text) found.push(`${path} was changed`);
  };
  same(join(outside, "canary"), "canary\n");
  same(join(home, ".ssh/id_ed25519"), "canary\n");
  same(join(home, ".bashrc"), "# escape-marker\n");
  same(join(workspace, ".env"), "canary\n");
  same(join(workspace, ".git/config"), GIT_CONFIG);
  for (const hook of ["scripts/pre-commit", ".git/hooks/pre-commit"]) {
    const path = join(workspace, hook);
    // A hook that is gone runs nothing.
    if (existsSync(path)) same(path, HOOK);
  }
  for (const name of readdirSync(workspace))
    if (((statSync(join(workspace, name), { throwIfNoEntry: false })?.mode ?? 0) & SET_ID) !== 0)
      found.push(`${name} gives its owner's or group's rights`);
  if (existsSync(join(outside, "made"))) found.push("a link made a file outside");
  if (existsSync(join(outside, "later"))) found.push("a planted file ran");
  if (outsider.exitCode !== null) found.push("a process outside was ended");
  for (const path of [
    ".git/hooks/post-checkout",
    ".git/info/attributes",
    ".git/commondir",
    ".claude",
    ".codex",
    ".vscode",
    ".mcp.json",
    ".envrc",
    ".husky",
    "lefthook.yml",
    "deep/er/.envrc",
    "deep/.ENVRC",
    "deep/.claude",
    "deep/.vscode",
    "nested/.git",
    "tools/hooks/post-merge",
    ".git/info/attributes",
    ".bashrc",
    ".profile",
  ])
    if (existsSync(join(workspace, path))) found.push(`${path} is there and would run`);
  return found;
}

export async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { launch: { type: "string" } } });
  const own = [process.execPath, join(process.cwd(), "bin/svc.js"), "run"];
  const config = mkdtempSync(join(tmpdir(), "escape-config-"));
  chmodSync(config, 0o700);
  writeFileSync(join(config, "svc.config.yaml"), `data: ${config}/data\n`);
  const { tried, outside, code, output } = await tryAllWays(() =>
    values.launch === undefined
      ? [...own, "--config", join(config, "svc.config.yaml"), "--"]
      : values.launch.split(" "),
  );
  rmSync(config, { recursive: true, force: true });
  for (const { group, way, result } of tried) console.log(`${result.padEnd(8)} ${group}: ${way}`);
  for (const one of outside) console.log(`ESCAPED  outside: ${one}`);
  const escaped = tried.filter(({ result }) => result === "ESCAPED").length + outside.length;
  console.log(`${tried.length} of ${ESCAPE_WAYS.length} ways tried, ${escaped} got out`);
  if (tried.length < ESCAPE_WAYS.length)
    console.error(`the sandbox ended early with code ${code}: ${output}`);
  return escaped === 0 && tried.length === ESCAPE_WAYS.length ? 0 : 1;
}
