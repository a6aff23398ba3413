/** What may not be written where, and what to write instead. */
import type { SourceFile } from "../files.ts";
import { lineAt } from "../source.ts";

export interface Ban {
  readonly what: RegExp;
  readonly instead: string;
  /** Which text to look in: `code` by default, where strings and comments are blank. */
  readonly look?: "code" | "withStrings" | "text";
  readonly where: (path: string) => boolean;
}

const PURE = /^src\/(?:kernel|rules|ledger|govern|rollback|simulate)\//;
const SURFACE = /^src\/(?:http|console|gateway|library|hook|cli|adapters)\//;
const pure = (path: string): boolean => PURE.test(path) && path !== "src/kernel/env.ts";
const inSrc = (path: string): boolean => path.startsWith("src/");
const outside =
  (folder: string) =>
  (path: string): boolean =>
    inSrc(path) && !path.startsWith(`src/${folder}/`);
const isTest = (path: string): boolean => path.endsWith(".test.ts");

const OUTER_MODULES =
  "fs|fs/promises|net|tls|http|https|http2|dns|dns/promises|dgram|child_process|worker_threads|os|process|timers|timers/promises|readline";

/** Rules for shipped code. */
export const SOURCE_BANS: readonly Ban[] = [
  { what: /\bDate\.now\b/, instead: "core has no clock: use env.now()", where: pure },
  { what: /\bnew\s+Date\s*(?:\(\s*\)|(?!\s*\())/, instead: "core has no clock: use env.now()", where: pure },
  { what: /\bperformance\s*\./, instead: "core has no clock: use env.elapsed()", where: pure },
  { what: /\bMath\.random\b/, instead: "core has no dice: use env.random()", where: pure },
  {
    what: /\brandom(?:Bytes|UUID|Int|FillSync)\b/,
    instead: "core has no dice: use env.bytes() or env.uuid()",
    where: pure,
  },
  {
    what: /\bset(?:Timeout|Interval|Immediate)\b/,
    instead: "core does not wait: use env.sleep()",
    where: pure,
  },
  {
    what: /(?<![\w$.])process\s*\./,
    instead: "core knows no process: take the value as a parameter",
    where: pure,
  },
  {
    what: new RegExp(
      `["']node:(?:${OUTER_MODULES})["']|\\b(?:from|import|require|getBuiltinModule)\\s*\\(?\\s*["'](?:${OUTER_MODULES})["']`,
    ),
    look: "withStrings",
    instead: "core knows no disk, network or process: take a port as a parameter",
    where: pure,
  },
  {
    what: /(?:(?<![\w$.])await\s+|[=(,:?>]\s*|\breturn\s+|\bvoid\s+|globalThis\s*\.\s*)fetch\s*\(/,
    instead: "every outgoing request goes through src/egress (and a function of your own needs another name)",
    where: outside("egress"),
  },
  {
    what: /["']undici["']/,
    look: "withStrings",
    instead: "every outgoing request goes through src/egress",
    where: outside("egress"),
  },
  {
    what: /(?<![\w$.])console\s*\.\s*(?:log|error|warn|info|debug|trace|table|dir)\b/,
    instead: "only src/cli prints; log with src/telemetry, or return what is to be shown",
    where: outside("cli"),
  },
  {
    what: /(?<!=)[<>]=?\s*[\w.]*\bexpires_ms\b|\bexpires_ms\s*(?:<|>=?)(?![=>])/,
    instead: "the rule for expiry is in src/govern/expiry.ts: use isExpired() or isInForce()",
    where: (path) => inSrc(path) && path !== "src/govern/expiry.ts" && !isTest(path),
  },
  {
    what: /\bcore\s*\??\.\s*store\b|\{[^{}\n;]*\bstore\b[^{}\n;]*\}\s*=\s*[\w.]*\bcore\b/,
    instead: "a surface does not touch the store: perform an operation, or use a function of src/operations",
    where: (path) => SURFACE.test(path) && !isTest(path),
  },
  { what: /^[ \t]*export\s+\*/m, instead: "name what you export", where: inSrc },
  {
    what: /(?:[:<,|&(=>]|\b(?:as|extends|is))\s*any(?![\w$]|\s*[(:?])/,
    instead: "no any: use unknown and narrow it, or say the type",
    where: inSrc,
  },
  {
    what: /@ts-(?:ignore|nocheck|expect-error)/,
    look: "text",
    instead: "the type checker is not silenced; say the type",
    where: inSrc,
  },
  {
    what: /(?:\/\/|^\s*\/?\*)[^\n]*\b(?:(?:no|some|any)body|(?:some|any|no )one)\b/im,
    look: "text",
    instead: "say who acts: a process, a caller, a person",
    where: (path) => inSrc(path) && !isTest(path),
  },
];

/** Rules for tests: nothing may quietly not run. */
export const TEST_BANS: readonly Ban[] = [
  {
    what: /(?<![\w$.])(?:it|test|describe)(?:\.\w+)*\.only\b/,
    instead: "take .only away: it hides every other test",
    where: isTest,
  },
  {
    what: /(?<![\w$.])(?:it|test|describe)(?:\.\w+)*\.(?:skip|todo)\b/,
    instead: "repair the test or delete it; skipIf is for what a platform lacks",
    where: isTest,
  },
  {
    what: /(?<![\w$.])(?:execFile|execFileSync|spawn|spawnSync)\(\s*"(?:git|openssl|python3|curl)"/,
    look: "text",
    instead: "ask for it with program(..): a bare machine has it only once a test has asked",
    where: isTest,
  },
];

/** Rules for every text in the repository. The patterns are broken up so that they do not find themselves. */
export const TEXT_BANS: readonly Ban[] = [
  {
    what: new RegExp(`(?<![\\w.-])/${"work"}/|(?<![\\w.-])/${"root"}/`),
    look: "text",
    instead: "a path of one machine means nothing on another; make it relative",
    where: () => true,
  },
  {
    what: new RegExp(`\\b${"registry"}\\.[\\w-]+\\.\\w{2,}|"${"resolved"}": *"https?:`),
    look: "text",
    instead: "name no registry: which one to use is the user's own npm configuration",
    // The detectors' samples quote what people really leak.
    where: (path) => !path.startsWith("test/cases/"),
  },
];

export function banProblems(files: readonly SourceFile[], bans: readonly Ban[]): string[] {
  return files.flatMap((file) =>
    bans.flatMap(({ what, look = "code", where, instead }) => {
      if (!where(file.path)) return [];
      const flags = what.flags.includes("g") ? what.flags : `${what.flags}g`;
      return [...file[look].matchAll(new RegExp(what.source, flags))].map(
        (match) => `${file.path}:${lineAt(file[look], match.index)} ${match[0].trim()}: ${instead}`,
      );
    }),
  );
}
