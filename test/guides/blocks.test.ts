/** What the pages show in passing is real: their YAML loads, their commands, options and routes exist. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { COMMAND_TABLE } from "../../src/cli/commands/index.ts";
import { type CommandContext, globalOptions } from "../../src/cli/context.ts";
import { loadSettings } from "../../src/config/load.ts";
import { channelsSchema } from "../../src/notify/channels/table.ts";
import { manifestProblems } from "../../src/rules/manifest/load.ts";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import { filesUnder, ROOT, sourceFile } from "../support/files.ts";
import { documentationPages } from "../support/language/baseline.ts";
import { pageKind } from "../support/language/measure.ts";
import { apiDocument } from "../support/reference/http.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { scriptsOf, unrunScripts } from "./guide-shell.ts";

const PAGES = documentationPages().filter((page) => pageKind(page) === "user");

interface PageBlock {
  readonly at: string;
  readonly info: string;
  readonly text: string;
}

/** The fenced blocks of all pages in one of these languages. */
function blocksIn(...languages: string[]): PageBlock[] {
  const fence = new RegExp(
    `^( *)\`\`\`((?:${languages.join("|")})\\b[^\\n]*)\\n([\\s\\S]*?)^\\1\`\`\``,
    "gm",
  );
  return PAGES.flatMap(({ path, text }) =>
    [...text.matchAll(fence)].map((block) => ({
      at: `${path}:${text.slice(0, block.index).split("\n").length}`,
      info: block[2]!,
      text: block[3]!,
    })),
  );
}

const problemOf = (attempt: () => void): string | null => {
  try {
    attempt();
    return null;
  } catch (error) {
    return String(error);
  }
};

const policyProblem = (text: string): string | null =>
  problemOf(() => loadPolicy(/^version:/m.test(text) ? text : `version: 1\n${text}`, "policy.yaml"));

function settingsProblem(text: string): string | null {
  const cwd = tempDir("settings");
  writeFileSync(join(cwd, "svc.config.yaml"), text);
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => [name!, "https://example.com/secret"]);
  return problemOf(() =>
    loadSettings({
      env: Object.fromEntries(names),
      cwd,
      schemas: { "notifications.channels": channelsSchema },
    }),
  );
}

/** Blocks that are none of the three, or that show a mistake. */
const OTHER = /file=(?:broken|plans)\.yaml|scrape_configs:/;

/** The reason why a block is not a list of manifests, a policy or settings. */
function blockProblem({ info, text }: PageBlock): string | null {
  if (OTHER.test(info + text)) return null;
  if (Array.isArray(parse(text))) return manifestProblems(text, "manifests.yaml")[0] ?? null;
  const asPolicy = policyProblem(text);
  const asSettings = settingsProblem(text);
  return asPolicy === null || asSettings === null ? null : `${asPolicy}\n${asSettings}`;
}

async function commandTree(): Promise<Command> {
  const program = globalOptions(new Command("svc"));
  for (const { load } of COMMAND_TABLE) (await load())(program, { io: {} } as CommandContext);
  return program;
}

/** The `svc` commands of a block, each without its redirections and comments. */
const commandLines = ({ info, text }: PageBlock): string[] =>
  text
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => info === "sh" || /^\s*\$ /.test(line))
    .flatMap((line) => line.split(/\s(?:#|\||&&|&|>|<)\s?|;|\$\(/))
    .map((line) =>
      line.replace(/^\s*(?:\$ |sudo -u svc |npx |[A-Z_]+=\S+ |docker compose \w+ \S+ |alias .*)*/, ""),
    )
    .filter((line) => /^svc\s+\w/.test(line));

/** The first word of a command line that `svc` does not know. */
function unknownWord(program: Command, line: string): string | null {
  const words = line.match(/'[^']*'?|"[^"]*"?|\S+/g)!.slice(1);
  let command = program;
  while (command.commands.length > 0 && words.length > 0 && !words[0]!.startsWith("-")) {
    const child = command.commands.find((one) => one.name() === words[0]);
    if (child === undefined) return command.registeredArguments.length > 0 ? null : words[0]!;
    command = child;
    words.shift();
  }
  const known = new Set(["--help", "--version"]);
  for (let one: Command | null = command; one !== null; one = one.parent)
    for (const { short, long } of one.options) known.add(short ?? "").add(long ?? "");
  return words.find((word) => /^--?[a-z]/.test(word) && !known.has(word.split("=")[0]!)) ?? null;
}

/** Messages in the tables of symptoms that come from another program, or from a command on the page. */
const FOREIGN = /Structured content does not|Signature Verification|broken at|tasks are left/;

/** The quoted messages of a page's tables of symptoms, in pieces without their variable parts. */
function shownMessages(text: string): string[] {
  const tables = [...text.matchAll(/^\| (?:You see|Symptom) \|.*\n\|[- |]+\n((?:\|.*\n)+)/gm)];
  const cells = tables.flatMap(([, rows]) => rows!.split("\n").map((row) => row.split("|")[1] ?? ""));
  const quoted = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, message]) => message!));
  const pieces = quoted.flatMap((one) =>
    one.split(/…|^[\w.]+: |\.{2,}|<[^>]+>|\d+|"| [ab](?=[ ,:])|\w+_\S*/),
  );
  return pieces
    .map((piece) => piece.replace(/^[\s;:,.()]+|[\s;:,.()]+$/g, ""))
    .filter((piece) => / /.test(piece));
}

describe("the pages", () => {
  it("show YAML that loads as manifests, a policy or settings", () => {
    verifies("beyond.docs.yaml-loads");
    const blocks = blocksIn("yaml");
    const bad = blocks.flatMap((block) => {
      const problem = blockProblem(block);
      return problem === null ? [] : [`${block.at}: ${problem}`];
    });
    expect([blocks.length > 40, bad]).toEqual([true, []]);
  });

  it("show commands and options that svc has", async () => {
    verifies("beyond.docs.commands-exist");
    const program = await commandTree();
    const lines = blocksIn("sh", "console").flatMap((block) =>
      commandLines(block).map((line) => ({ at: block.at, line })),
    );
    const bad = lines.flatMap(({ at, line }) => {
      const word = unknownWord(program, line);
      return word === null ? [] : [`${at}: ${line}: ${word}`];
    });
    expect([lines.length > 100, bad]).toEqual([true, []]);
  });

  it("quote messages that the code has", () => {
    verifies("beyond.docs.messages-exist");
    const code = [
      ...filesUnder("src", ".ts"),
      ...filesUnder("sdk/python/reversi_sdk", ".py"),
      ...filesUnder("deploy/ha", ".sh"),
    ]
      .map((path) => sourceFile(path).text)
      .join("\n")
      .replaceAll('\\"', '"');
    const quoted = PAGES.flatMap(({ path, text }) =>
      shownMessages(text).map((message) => ({ path, message })),
    );
    const bad = quoted.filter(({ message }) => !FOREIGN.test(message) && !code.includes(message));
    expect([quoted.length > 20, bad]).toEqual([true, []]);
  });

  it("name routes that the server has", () => {
    verifies("beyond.docs.routes-exist");
    const known = Object.entries(apiDocument().paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "{}")}`),
    );
    const named = PAGES.flatMap(({ path, text }) =>
      [...text.matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/v1\/[^\s`?]*)/g)].map(([, route]) => ({
        path,
        route: route!.replaceAll(/\{\w+\}/g, "{}"),
      })),
    );
    const bad = named.filter(({ route }) => !route.includes("*") && !known.includes(route));
    expect([named.length > 20, bad]).toEqual([true, []]);
  });

  it("have `sh` blocks that a test runs, or that the table of the others names", () => {
    verifies("beyond.docs.guides-run");
    const tests = ["guides", "prepared", "agents"].map((name) =>
      readFileSync(join(ROOT, `test/guides/${name}.test.ts`), "utf8"),
    );
    const isRun = (path: string): boolean =>
      [path, basename(path, ".md")].some((name) => tests.some((text) => text.includes(`"${name}"`)));
    const shown = PAGES.flatMap(({ path, text }) => scriptsOf(text).map(({ first }) => `${path}: ${first}`));
    const excused = unrunScripts().map(({ page, first }) => `${page}: ${first}`);
    expect(shown.filter((one) => !excused.includes(one) && !isRun(one.split(":")[0]!))).toEqual([]);
    expect(excused.filter((one) => !shown.includes(one))).toEqual([]);
  });
});
