/**
 * Keeps the house in order: layers, rings, sizes, banned calls. A failure says what to do instead.
 * Every rule is also tried on a sample that breaks it, for a rule that cannot fail keeps nothing.
 */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { allTexts, filesUnder, ROOT, type SourceFile, sourceFile } from "./support/files.ts";
import {
  countLanguage,
  growth,
  MAX_USER_WORDS,
  readBaseline,
  titlesOf,
  userWords,
} from "./support/language/baseline.ts";
import { bannedPhrases, bareNames, longParts, subjectProblems } from "./support/language/measure.ts";
import { program } from "./support/programs.ts";
import { readSource } from "./support/source.ts";
import { assertionProblems } from "./support/tidy/assertions.ts";
import { banProblems, SOURCE_BANS, TEST_BANS, TEXT_BANS } from "./support/tidy/bans.ts";
import { exportProblems } from "./support/tidy/exports.ts";
import { functionsIn } from "./support/tidy/functions.ts";
import { findCycles, importsOf } from "./support/tidy/imports.ts";
import { arrowProblem, cycleProblems, layerProblems } from "./support/tidy/layers.ts";
import { patternProblems } from "./support/tidy/patterns.ts";
import { verifies } from "./support/verifies.ts";

/** Subjects of later commits are checked. */
const FIRST_CHECKED_COMMIT = "dbccd775aa6e";
const MAX_FILE_LINES = 400;
const MAX_FUNCTION_LINES = 70;
const MAX_PARAMETERS = 5;
/** It counts in bare numbers, millions of them: an object for each would cost more than the counting. */
const BARE_NUMBERS = "src/evidence/chain/run-numbering.ts";
const VAGUE = /(?:^|[/._-])(?:utils?|helpers?|misc|common)(?=[/._-])/i;

const all = ["src", "test"].flatMap((folder) => filesUnder(folder, ".ts")).map(sourceFile);
const shipped = all.filter(({ path }) => path.startsWith("src/") && !path.endsWith(".test.ts"));

function sample(path: string, text: string): SourceFile {
  return { path, text, ...readSource(text) };
}

describe("tidy", () => {
  it("keeps the layers", () => {
    expect(layerProblems(shipped)).toEqual([]);
  });

  it("has no import cycles", () => {
    expect(cycleProblems(shipped)).toEqual([]);
  });

  it("makes no banned calls", () => {
    expect(banProblems(shipped, SOURCE_BANS)).toEqual([]);
  });

  it("has no pattern that a long text makes slow", () => {
    verifies("beyond.heavy.linear-patterns");
    expect(patternProblems(shipped)).toEqual([]);
  });

  it("casts past the compiler in ten places at most", () => {
    const casts = shipped.flatMap(({ path, text }) => text.match(/ as unknown as /g)?.map(() => path) ?? []);
    expect(casts.length, casts.join(", ")).toBeLessThanOrEqual(10);
  });

  it("leaves no test out", () => {
    expect(banProblems(all, TEST_BANS)).toEqual([]);
  });

  it("has no test that asserts nothing", () => {
    expect(assertionProblems(all.filter((file) => !shipped.includes(file)))).toEqual([]);
  });

  it("exports nothing that no other file uses", () => {
    const users = ["stress", "bench"].flatMap((folder) => filesUnder(folder, ".ts")).map(sourceFile);
    const scripts = filesUnder("scripts", ".mjs").map(sourceFile);
    expect(exportProblems(shipped, [...all, ...users, ...scripts])).toEqual([]);
  });

  it("reads no worse than before: phrases, lengths, names", () => {
    const problems = growth(countLanguage(), readBaseline());
    expect(problems, "npm run language -- --changed lists the phrases on your lines").toEqual([]);
  });

  it("asks users to read no more than they did", () => {
    expect(userWords()).toBeLessThanOrEqual(MAX_USER_WORDS);
  });

  it("has commit subjects that say what the commit does", async () => {
    const git = await program("git");
    const log = spawnSync(git, ["log", "--no-merges", "--format=%h %s", `${FIRST_CHECKED_COMMIT}..HEAD`], {
      cwd: ROOT,
      encoding: "utf8",
    });
    // A packed or shallow copy has no history to check.
    const subjects = log.status === 0 ? log.stdout.split("\n").filter(Boolean) : [];
    const problems = subjects.flatMap((line) =>
      subjectProblems(line.replace(/^\S+ /, "")).map((why) => `${line}: ${why}`),
    );
    expect(problems).toEqual([]);
  });

  it("names things by what they are", () => {
    const vague = [...all.map(({ path }) => path), ...filesUnder("scripts", "")].filter((path) =>
      VAGUE.test(path),
    );
    expect(vague, "name the file or folder after what it holds").toEqual([]);
  });

  it("keeps files short", () => {
    const long = shipped
      .map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }))
      .filter(({ lines }) => lines > MAX_FILE_LINES)
      .map(
        ({ path, lines }) =>
          `${path} has ${lines} lines: split it by what it does, ${MAX_FILE_LINES} at most`,
      );
    expect(long).toEqual([]);
  });

  it("keeps functions short", () => {
    const long = shipped.flatMap(({ path, code }) =>
      functionsIn(code)
        .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
        .map(
          ({ header, line, lines }) =>
            `${path}:${line} "${header}" has ${lines} lines: give its parts names, ${MAX_FUNCTION_LINES} at most`,
        ),
    );
    expect(long).toEqual([]);
  });

  it("gives functions few parameters", () => {
    const many = shipped.flatMap(({ path, code }) =>
      functionsIn(code)
        .filter(({ parameters }) => parameters > MAX_PARAMETERS && path !== BARE_NUMBERS)
        .map(
          ({ line, parameters }) =>
            `${path}:${line} takes ${parameters} things: give what belongs together a name, ${MAX_PARAMETERS} at most`,
        ),
    );
    expect(many).toEqual([]);
  });

  it("opens every file with what it owns", () => {
    const bare = shipped.filter(({ text }) => !/^(?:#!.*\n)?\/\*\*/.test(text)).map(({ path }) => path);
    expect(bare, "begin the file with /** one or two sentences: what it owns and keeps true */").toEqual([]);
  });

  it("depends on what it imports, and on nothing else", () => {
    const { dependencies } = JSON.parse(sourceFile("package.json").text) as {
      dependencies: Record<string, string>;
    };
    const imported = new Set(
      shipped.flatMap(({ text }) =>
        [...text.matchAll(/(?:from |import\()"((?:@[\w-]+\/)?[\w-][\w.-]*)/g)].map(([, name]) => name!),
      ),
    );
    const unused = Object.keys(dependencies).filter((name) => !imported.has(name));
    expect(unused, "remove it, or move it to the development dependencies").toEqual([]);
  });

  it("says nothing about the machine it was written on", () => {
    expect(banProblems(allTexts(), TEXT_BANS)).toEqual([]);
  });
});

describe("the rules themselves", () => {
  it.each([
    ["src/kernel/a.ts", "src/rules/b.ts", false, "kernel may not know rules"],
    ["src/rules/a.ts", "src/govern/b.ts", true, "rules may not know core"],
    ["src/govern/a.ts", "src/rollback/b.ts", true, "within core the order is"],
    ["src/govern/a.ts", "src/store/batch.ts", true, "core may not know infrastructure"],
    ["src/ledger/a.ts", "src/govern/b.ts", false, "within core the order is"],
    ["src/govern/a.ts", "src/ledger/b.ts", false, undefined],
    ["src/alerts/a.ts", "src/notify/b.ts", false, "do not import one another"],
    ["src/service/a.ts", "src/store/sqlite/store.ts", false, "only src/store/open.ts"],
    ["src/store/open.ts", "src/store/sqlite/store.ts", false, undefined],
    ["src/store/sqlite/a.ts", "src/store/sqlite/b.ts", false, undefined],
    ["src/store/sqlite/a.ts", "src/store/files/b.ts", false, "only src/store/open.ts"],
    ["src/http/a.ts", "src/operations/b.ts", false, undefined],
    ["src/gateway/a.ts", "src/console/b.ts", false, "let src/service/start bring them together"],
    ["src/library/a.ts", "src/http/api/b.ts", false, undefined],
    ["src/http/api/a.ts", "src/http/b.ts", false, "api may not know surfaces"],
    ["src/service/start/a.ts", "src/console/b.ts", false, undefined],
    ["src/service/a.ts", "src/service/start/b.ts", false, "service may not know processes"],
    ["src/service/start/a.ts", "src/cli/b.ts", false, "within processes the order is"],
    ["src/operations/a.ts", "src/http/b.ts", false, "operations may not know surfaces"],
    ["src/helper/a.ts", "src/kernel/b.ts", false, "belongs to no layer"],
    ["src/operations/pipeline/a.ts", "src/operations/runs/b.ts", false, "within operations the order is"],
    ["src/operations/runs/a.ts", "src/operations/pipeline/b.ts", false, undefined],
    ["src/operations/pipeline/a.ts", "src/operations/app.ts", true, undefined],
    ["src/operations/app.ts", "src/operations/runs/a.ts", true, undefined],
    ["src/operations/app.ts", "src/operations/runs/a.ts", false, "only src/service makes the app"],
    ["src/operations/a.ts", "src/index.ts", false, "the library's entry"],
    ["src/index.ts", "src/operations/a.ts", false, undefined],
    ["src/operations/a.ts", "test/support/env.ts", false, "only from src/"],
  ])("layers: %s -> %s", (from, to, typeOnly, problem) => {
    const found = arrowProblem(from, to, typeOnly);
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(problem);
  });

  it("cycles: finds a ring once, and none in a diamond", () => {
    const ring = new Map([
      ["a", ["b"]],
      ["b", ["c"]],
      ["c", ["a"]],
    ]);
    const diamond = new Map([
      ["a", ["b", "c"]],
      ["b", ["d"]],
      ["c", ["d"]],
      ["d", []],
    ]);
    expect(findCycles(ring)).toEqual([["a", "b", "c"]]);
    expect(findCycles(diamond)).toEqual([]);
  });

  it("imports: reads every form and no text that looks like one", () => {
    const file = sample(
      "src/operations/a.ts",
      [
        'import x from "./x.ts";',
        'import type { Y } from "../rules/y.ts";',
        "import {\n  z,\n} from './z.ts';",
        'import "./effect.ts";',
        'export { w } from "./w.ts";',
        'const late = await import("./late.ts");',
        "// import no from './no.ts'",
        "const text = `\nimport no from './no.ts'\n`;",
        'export const from = "./no.ts";',
      ].join("\n"),
    );
    expect(importsOf(file).map(({ target, typeOnly }) => `${typeOnly ? "type " : ""}${target}`)).toEqual([
      "src/operations/x.ts",
      "type src/rules/y.ts",
      "src/operations/z.ts",
      "src/operations/effect.ts",
      "src/operations/w.ts",
      "src/operations/late.ts",
    ]);
  });

  it.each([
    ["src/govern/a.ts", "const t = Date.now();"],
    ["src/govern/a.ts", "const t = new Date();"],
    ["src/govern/a.ts", "const t = new Date;"],
    ["src/rules/a.ts", "Math.random()"],
    ["src/rules/a.ts", "setTimeout(f, 1)"],
    ["src/rules/a.ts", "process.env.X"],
    ["src/rules/a.ts", 'import { readFileSync } from "node:fs";'],
    ["src/rules/a.ts", 'import { spawn } from "child_process";'],
    ["src/kernel/a.ts", 'import { randomBytes } from "node:crypto";'],
    ["src/notify/a.ts", "await fetch(url)"],
    ["src/notify/a.ts", 'import { request } from "undici";'],
    ["src/operations/a.ts", 'console.log("x")'],
    ["src/operations/a.ts", 'export * from "./b.ts";'],
    ["src/operations/a.ts", "const x: any = 1;"],
    ["src/operations/a.ts", "const x = y as any;"],
    ["src/operations/a.ts", "const x: Map<string, any> = y;"],
    ["src/operations/a.ts", "// @ts-ignore"],
    ["src/operations/a.ts", "/** Told to nobody. */"],
    ["src/operations/a.ts", "if (env.now() >= approval.expires_ms) return null;"],
    ["src/console/a.ts", "const fresh = sessions.filter(({ expires_ms }) => expires_ms > now);"],
    ["src/console/a.ts", 'const run = await ctx.app.core.store.get("runs", id);'],
    ["src/gateway/a.ts", "const { store, env } = this.app.core;"],
  ])("bans: %s may not hold %s", (path, text) => {
    expect(banProblems([sample(path, text)], SOURCE_BANS)).toHaveLength(1);
  });

  it.each([
    ["src/kernel/env.ts", "Date.now()"],
    ["src/govern/a.ts", "const t = new Date(env.now());"],
    ["src/govern/a.ts", "// Date.now() would be wrong here"],
    ["src/govern/a.ts", 'const text = "Date.now()";'],
    ["src/console/a.ts", 'const text = "Nobody waits.";'],
    ["src/govern/a.ts", "process(units)"],
    ["src/govern/a.ts", "work.process.start()"],
    ["src/store/a.ts", 'import { readFileSync } from "node:fs";'],
    ["src/egress/a.ts", "await fetch(url)"],
    ["src/notify/a.ts", "await egress.fetch(url)"],
    ["src/store/a.ts", "class A {\n  fetch(keys: Key[]) {}\n}"],
    ["src/config/a.ts", "console.role"],
    ["src/cli/a.ts", 'console.log("x")'],
    ["src/operations/a.ts", "const found = Promise.any(list);"],
    ["src/operations/a.ts", "const many: Company[] = company;"],
    ["src/govern/expiry.ts", "return now >= expires_ms;"],
    ["src/notify/a.ts", "const sorted = all.sort((a, b) => a.expires_ms - b.expires_ms);"],
    ["src/operations/a.ts", 'const run = await app.core.store.get("runs", id);'],
    ["src/console/a.ts", "const key = app.core.storeKey;"],
  ])("bans: %s may hold %s", (path, text) => {
    expect(banProblems([sample(path, text)], SOURCE_BANS)).toEqual([]);
  });

  it("bans: finds tests that do not run, and machine paths", () => {
    expect(
      banProblems([sample("test/a.test.ts", "it.only(x); describe.skip(y); it.skipIf(z)")], TEST_BANS),
    ).toHaveLength(2);
    const bare = ["execFileSync", '("git", args); execFileSync(GIT, args)'].join("");
    expect(banProblems([sample("test/a.test.ts", bare)], TEST_BANS)).toHaveLength(1);
    expect(banProblems([sample("README.md", `see ${["", "work", "x"].join("/")}`)], TEXT_BANS)).toHaveLength(
      1,
    );
    expect(
      banProblems([sample("a.md", `https://${["registry", "npmjs", "org"].join(".")}/x`)], TEXT_BANS),
    ).toHaveLength(1);
  });

  it("patterns: finds each kind of slow one", () => {
    const slow = [/0+$/.source, /^(?:a+)+b$/.source, /^\d*\d*x$/.source];
    const fast = [/(?<!0)0+$/.source, /^a+b$/.source, /[.,]+/.source];
    const found = (sources: readonly string[]): string[] =>
      patternProblems([sample("src/a.ts", sources.map((source) => `f(/${source}/);`).join("\n"))]).filter(
        (problem) => problem.startsWith("src/"),
      );
    expect(found(slow)).toHaveLength(slow.length);
    expect(found(fast)).toEqual([]);
  });

  it("assertions: finds the test without one, and follows functions that have one", () => {
    const kept = [
      "const holds = (x: unknown) => expect(x).toBe(1);",
      "function shown(x: unknown) {\n  return holds(x);\n}",
      'it("a", () => {\n  expect(1).toBe(1);\n});',
      'it.each([\n  [1],\n])("b", (x) => {\n  shown(x);\n});',
      'it("c", () => seen(1));',
    ];
    const bare = 'describe("d", () => {\n  it("e", () => {\n    run("expect");\n  });\n});';
    const files = [
      sample("test/a.test.ts", ['import { seen } from "./support/b.ts";', ...kept, bare].join("\n")),
      sample("test/support/b.ts", "export async function seen(x: number) {\n  expect(x).toBe(1);\n}"),
    ];
    expect(assertionProblems(files)).toEqual([expect.stringMatching(/^test\/a\.test\.ts:16 /)]);
  });

  it("exports: finds what only its own file names", () => {
    const files = [
      sample(
        "src/operations/a.ts",
        "export const used = 1;\nexport const alone = used;\nexport type Told = 1;",
      ),
      sample("src/operations/b.ts", 'import { used } from "./a.ts"; // alone'),
      sample("src/library/c.ts", "export const offered = 1;"),
    ];
    expect(exportProblems(files, files)).toEqual([
      expect.stringContaining("src/operations/a.ts exports alone"),
    ]);
  });

  it("language: finds phrases in any case, and none inside a longer word", () => {
    const names = (text: string): string[] => bannedPhrases(text).map(({ name }) => name);
    expect(names("Whoever asks is told what was taken back.")).toEqual([
      "whoever",
      "told",
      "what is",
      "take back",
    ]);
    expect(names("Besides, understands and the standalone server.")).toEqual([]);
  });

  it("language: reads the titles of tests, up to their first value", () => {
    const code = [
      'describe("a run", () => {',
      '  it.each([1])("is %s", () => call("it"));',
      "  it(`ends $" + "{id}`, () => {});",
    ].join("\n");
    expect(
      titlesOf(sample("x.test.ts", code))
        .trim()
        .split(/\s{2,}/),
    ).toEqual(["a run", "is %s", "ends"]);
  });

  it("language: measures paragraphs, bullets and cells, and leaves code out", () => {
    const words = (count: number): string => Array.from({ length: count }, () => "word").join(" ");
    const page = [
      words(61),
      "",
      `- ${words(31)}`,
      "",
      `| ${words(21)} | ${words(3)} |`,
      "",
      "```",
      words(90),
      "```",
    ];
    expect(longParts(page.join("\n"))).toEqual([
      { kind: "paragraph", line: 1, words: 61 },
      { kind: "bullet", line: 3, words: 31 },
      { kind: "cell", line: 5, words: 21 },
    ]);
    expect(longParts([words(60), "", `- ${words(30)}`, "", `| ${words(20)} |`].join("\n"))).toEqual([]);
  });

  it("language: an exported name is more than one bare word", () => {
    const code =
      "export const took = 1;\nexport interface Told {}\nexport function expireApprovals() {}\nconst at = 1;";
    expect(bareNames(code)).toEqual(["took", "Told"]);
  });

  it("language: a figure above its baseline is reported, one below it is not", () => {
    const counts = (documentation: number, ...bare_names: string[]) => ({
      marks: { documentation, comments: 1, messages: 1, titles: 1 },
      long: { paragraphs: 0, bullets: 0, cells: 0 },
      bare_names,
    });
    expect(growth(counts(4), counts(5, "took"))).toEqual([]);
    expect(growth(counts(6, "took", "seen"), counts(5, "took"))).toEqual([
      "marks in documentation: 6, the baseline is 5",
      "exported names of one bare word: seen",
    ]);
  });

  it.each([
    ["Add grants", []],
    ["gateway: retry lost upstream connection", []],
    ["The docs tell what flags gave", ["begin with a verb in the imperative"]],
    ["Fixed a race", ["begin with a verb in the imperative"]],
    ["Bound the diff of a card by lines, bytes and comparisons made", ["61 characters, 60 at most"]],
  ])("language: commit subject %s", (subject, problems) => {
    expect(subjectProblems(subject)).toEqual(problems);
  });

  it("functions: measures each form and nothing else", () => {
    const { code } = readSource(
      [
        "function plain() {\n  return 1;\n}",
        "const arrow = (a: number) => {\n  return a;\n};",
        "class A {\n  method(): Promise<{ x: string }> {\n    return y;\n  }\n}",
        "function typed(f: () => void): f is () => void {\n  if (f) {\n    f();\n  }\n  return true;\n}",
        "const object = {\n  key: {\n    a: 1,\n  },\n};",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
        "const template = `${list.map((x) => {\n  return `}${x}{`;\n})}`;",
        "const regex = /[/}]{2}/;",
        "function before(): void {}\n\nexport class B {\n  a = 1;\n}",
        "const many = (a: Map<b, c>, [d, e]: f, { g, h }: i, j = k(l, m), n: () => o,): p[] => {};",
      ].join("\n"),
    );
    expect(functionsIn(code).map(({ line, lines, parameters }) => [line, lines, parameters])).toEqual([
      [1, 3, 0],
      [4, 3, 1],
      [8, 3, 0],
      [12, 6, 1],
      [23, 3, 1],
      [27, 1, 0],
      [32, 1, 5],
    ]);
  });
});
