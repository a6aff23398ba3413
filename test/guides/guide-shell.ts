/**
 * Runs the commands of a guide as a reader would, in a directory with the support desk of the demo, and compares what
 * they print with the page; the commands of `sh` blocks must succeed. `…` in an expected line is any text; a line of
 * three dots is any lines. A block with `file=<name>` is written to that file before the commands that follow it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect } from "vitest";
import { type ServerProcess, startSvcServer, svc } from "../support/cli.ts";
import { ROOT } from "../support/files.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";

interface ShownCommand {
  readonly command: string;
  readonly output: string;
  readonly line: number;
}

/** The `console` blocks of a page: each `$ ` line with what follows it. */
export function commandsOf(markdown: string): ShownCommand[] {
  const shown: { command: string; output: string[]; line: number }[] = [];
  for (const block of markdown.matchAll(/^( *)```console\n([\s\S]*?)^\1```/gm)) {
    const first = markdown.slice(0, block.index).split("\n").length + 1;
    for (const [i, text] of block[2]!.split("\n").entries()) {
      const line = text.slice(block[1]!.length);
      const current = shown.at(-1);
      if (line.startsWith("$ ")) shown.push({ command: line.slice(2), output: [], line: first + i });
      else if (current?.command.endsWith("\\") && current.output.length === 0)
        current.command = `${current.command.slice(0, -1)}${line.trim()}`;
      else current?.output.push(line);
    }
  }
  return shown.map(({ command, output, line }) => ({ command, output: output.join("\n").trimEnd(), line }));
}

interface ShownScript {
  readonly script: string;
  /** The first line, which names the block in the table of commands that no test runs. */
  readonly first: string;
  readonly line: number;
}

/** The `sh` blocks of a page: commands whose output it does not show. */
export function scriptsOf(markdown: string): ShownScript[] {
  return [...markdown.matchAll(/^( *)```sh\n([\s\S]*?)^\1```/gm)].map((block) => {
    const script = block[2]!.replaceAll(new RegExp(`^${block[1]}`, "gm"), "");
    const line = markdown.slice(0, block.index).split("\n").length;
    return { script, first: script.split("\n")[0]!, line };
  });
}

/** The `sh` blocks that no test runs, with the reason: a table for contributors. */
export function unrunScripts(): { page: string; first: string; reason: string }[] {
  const text = readFileSync(join(ROOT, "docs/internals/testing.md"), "utf8");
  const section = /^## Commands of pages that no test runs\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text)![1]!;
  return [...section.matchAll(/^\| `([^`]+\.md)` \| `([^`]+)` \| (.+) \|$/gm)].map(
    ([, page, first, reason]) => ({ page: page!, first: first!.replaceAll("\\|", "|"), reason: reason! }),
  );
}

interface ShownFile {
  readonly name: string;
  readonly text: string;
  readonly line: number;
}

/** The blocks of a page that the reader saves as a file. */
export function filesOf(markdown: string): ShownFile[] {
  return [...markdown.matchAll(/^```\w+ file=(\S+)\n([\s\S]*?)^```/gm)].map((block) => ({
    name: block[1]!,
    text: block[2]!,
    line: markdown.slice(0, block.index).split("\n").length,
  }));
}

/**
 * Whether the text is what a page shows of it. An id cut to `halt_095cad6d…` is any id of that kind, and so is a hash.
 * Columns can be wider or narrower.
 */
export function fitsShown(shown: string, text: string): boolean {
  const line = (expected: string): string =>
    escaped(expected)
      .replace(CUT_ID, "$1[0-9a-f-]+")
      .replaceAll("…", ".*")
      .replace(/(?<=\S) {2,}/g, " {2,}");
  const pattern = shown
    .split("\n")
    .map((expected) => (expected.trim() === "..." ? "(?:.*\\n)*?.*" : line(expected)))
    .join("\\n");
  return new RegExp(`^${pattern}$`).test(text.replace(/[ \t\r]+$/gm, "").trimEnd());
}

const CUT_ID = /\b([a-z]+_|sha256:)[0-9a-f]{8}…/g;

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** A directory in which the demo's agent has worked: data, manifests, policy, keys, and `svc.config.yaml`. */
export async function supportDesk(): Promise<string> {
  const place = tempDir("guide");
  const example = join(ROOT, "examples/demo");
  for (const file of ["manifests.yaml", "policy.yaml", "desk.mjs"])
    cpSync(join(example, file), join(place, file));
  const undo = `${process.execPath} desk.mjs desk.json`;
  writeFileSync(
    join(place, "svc.config.yaml"),
    [
      "manifests: manifests.yaml",
      "policy: policy.yaml",
      "data: data",
      "keys: keys.json",
      "signing_key: signing.key",
      "capture: {enabled: true}",
      `rollback: {compensator_cmd: ${JSON.stringify(undo)}, reader_cmd: ${JSON.stringify(undo)}}`,
      "",
    ].join("\n"),
  );
  await mustRun(place, ["keygen", "signing"]);
  const key = await agentKey(place);
  const server = await startDesk(place);
  const load = (name: string) => import(pathToFileURL(join(example, name)).href);
  const desk = (await load("desk.mjs")).openDesk(join(place, "desk.json"));
  desk.begin();
  await (await load("agent.mjs")).work({ url: server.url, key, desk });
  expect(await server.stop()).toBe(0);
  return place;
}

async function agentKey(place: string): Promise<string> {
  const added = await mustRun(place, "keys add support-agent --role agent --max-permissions *".split(" "));
  return keyIn(added);
}

function keyIn(added: string): string {
  const key = /svc_[\w-]+/.exec(added)?.[0];
  if (key === undefined) throw new Error(`no key in: ${added}`);
  return key;
}

async function mustRun(place: string, args: string[]): Promise<string> {
  const { code, out, err } = await svc(args, { cwd: place });
  expect(code, err).toBe(0);
  return out;
}

const servers: ServerProcess[] = [];

// Also after a test that failed: a server that still writes would keep its directory from being removed.
afterAll(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function startDesk(place: string): Promise<ServerProcess> {
  const server = await startSvcServer([], { cwd: place });
  servers.push(server);
  return server;
}

/** A server on the directory, with the variables that a page uses: `URL`, and `KEY` of the admin ann. */
export async function serveDesk(
  place: string,
): Promise<{ settings: Settings; stop: () => Promise<number | null> }> {
  const added = await mustRun(place, "keys add ann --role admin".split(" "));
  await mustRun(place, "keys add ben --role approver".split(" "));
  const server = await startDesk(place);
  return { settings: { URL: server.url, KEY: keyIn(added) }, stop: () => server.stop() };
}

function saveFile(place: string, name: string, text: string): void {
  mkdirSync(dirname(join(place, name)), { recursive: true });
  writeFileSync(join(place, name), text);
}

export type Settings = Readonly<Record<string, string>>;

/** Commands that run until the reader stops them. */
const SERVES = /\bsvc (?:proxy|server)\b/;

/** What a page shows, with the values of this trial for its examples, such as an address. */
export const withValues = (text: string, values: Settings): string =>
  Object.entries(values).reduce((given, [shown, real]) => given.replaceAll(shown, real), text);

/** Does what the page describes between two commands, and returns variables for those that follow. */
export type BeforeCommand = (command: string) => Promise<Settings>;

/**
 * Runs every command of the page in order; throws at the first one that prints something else, or at an `sh` block that
 * fails. `values` are the real
 * values of texts that the page makes up. What the page exports holds for the commands that follow.
 */
export async function runGuide(
  page: string,
  place: string,
  settings: Settings = {},
  values: Settings = {},
  before: BeforeCommand = async () => ({}),
): Promise<number> {
  const markdown = withValues(readFileSync(join(ROOT, page), "utf8"), values);
  const skipped = unrunScripts().filter((one) => one.page === page);
  const commands: (Omit<ShownCommand, "output"> & { output: string | null })[] = [
    ...commandsOf(markdown),
    ...scriptsOf(readFileSync(join(ROOT, page), "utf8"))
      .filter(({ first }) => !skipped.some((one) => one.first === first))
      .map(({ script, line }) => ({ command: withValues(script, values), output: null, line })),
  ].sort((a, b) => a.line - b.line);
  const files = filesOf(markdown);
  const bin = join(place, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(
    join(bin, "svc"),
    `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, "bin/svc.js")}' "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const path = `${bin}${delimiter}${process.env["PATH"]}`;
  const env: Record<string, string> = { PATH: path, HOME: place, COLUMNS: "120", ...settings };
  const ids = new Map<string, string>();
  const serving: StartedCommand[] = [];
  try {
    for (const { command, output, line } of commands) {
      while (files[0] !== undefined && files[0].line < line) {
        const { name, text } = files.shift()!;
        saveFile(place, name, text);
      }
      Object.assign(env, await before(command));
      const whole = withIds(command, ids);
      for (const [, pairs] of whole.matchAll(/^export (.+)$/gm))
        for (const [, name, value] of pairs!.matchAll(/(\w+)=(\S*)/g)) env[name!] = value!;
      const ran = startCommand(output === null ? `set -e; ${whole}` : whole, place, env);
      if (output === null) {
        const code = await ran.ended;
        expect(code, `${page}:${line} ${command}\n${ran.output()}`).toBe(0);
        keepIds(ran.output(), ids);
        continue;
      }
      if (SERVES.test(command)) {
        serving.push(ran);
        await until(() => ran.child.exitCode !== null || fitsShown(output, ran.output()), `${page}:${line}`);
      } else await ran.ended;
      keepIds(ran.output(), ids);
      expect(fitsShown(output, ran.output()), `${page}:${line} $ ${command}\n${ran.output()}`).toBe(true);
    }
  } finally {
    for (const { child, ended } of serving) {
      if (child.exitCode === null) process.kill(-child.pid!, "SIGTERM");
      await ended;
    }
  }
  return commands.length;
}

interface StartedCommand {
  readonly child: ChildProcess;
  /** The exit code. */
  readonly ended: Promise<number | null>;
  output(): string;
}

/** A command line in its own process group. */
function startCommand(command: string, cwd: string, env: Settings): StartedCommand {
  const child = spawn("sh", ["-c", `exec 2>&1; ${command}`], {
    ...{ cwd, env, detached: true },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, ended, output: () => output };
}

/** A page cuts an id as `halt_095cad6d…`; the reader pastes the one that the last command printed. So for a key. */
function withIds(command: string, ids: ReadonlyMap<string, string>): string {
  return command
    .replace(CUT_ID, (cut, kind: string) => ids.get(kind) ?? cut)
    .replaceAll("<agent-key>", ids.get("svc_") ?? "<agent-key>");
}

function keepIds(output: string, ids: Map<string, string>): void {
  for (const [id, kind, hash] of output.matchAll(
    /\b(?:([a-z]+_)(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32})|(sha256:)[0-9a-f]{64})\b/g,
  ))
    ids.set((kind ?? hash)!, id);
  for (const [key] of output.matchAll(/^svc_[\w-]{40,}$/gm)) ids.set("svc_", key);
}
