/**
 * `npm run language [-- --pages | --changed | --lower]`: the language of the repository per 1,000 words. `--pages`
 * adds a line per page, `--changed` lists the banned phrases on lines you changed, `--lower` writes a smaller baseline.
 */
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { ROOT } from "../files.ts";
import {
  commentsOf,
  countLanguage,
  documentationPages,
  growth,
  lowerBaseline,
  messagesOf,
  readBaseline,
  repositoryPhrases,
  shippedSources,
  testSources,
  titlesOf,
} from "./baseline.ts";
import { measureText, type PageKind, pageKind, proseOf } from "./measure.ts";

const PAGE_KINDS: Record<PageKind, string> = {
  user: "for users, by hand",
  generated: "for users, generated reference",
  contributor: "for contributors",
};

const { values: options } = parseArgs({
  options: { pages: { type: "boolean" }, changed: { type: "boolean" }, lower: { type: "boolean" } },
});

if (options.changed) listChanged();
else {
  printFigures();
  const counts = countLanguage();
  if (options.lower) lowerBaseline(counts);
  const grown = growth(counts, readBaseline());
  for (const problem of grown) console.log(`above the baseline: ${problem}`);
  process.exitCode = grown.length > 0 ? 1 : 0;
}

function printFigures(): void {
  const pages = documentationPages();
  const prose = (list: typeof pages): string => list.map(({ text }) => proseOf(text)).join("\n\n");
  const sources = shippedSources();
  printRow("documentation", prose(pages));
  printRow("  guides", prose(pages.filter(({ path }) => path.includes("guides/"))));
  for (const [kind, label] of Object.entries(PAGE_KINDS))
    printRow(`  ${label}`, prose(pages.filter((page) => pageKind(page) === kind)));
  printRow("code comments", sources.map((source) => commentsOf(source)).join("\n\n"));
  printRow("messages", sources.map((source) => messagesOf(source)).join("\n\n"));
  printRow("test titles", testSources().map(titlesOf).join("\n\n"));
  if (options.pages) for (const page of pages) printRow(page.path, proseOf(page.text));
}

function printRow(name: string, text: string): void {
  const { words, marks, reader, passives, clauses, sentences } = measureText(text);
  const per = (count: number): string => ((1_000 * count) / Math.max(words, 1)).toFixed(1).padStart(5);
  const share = ((100 * clauses) / Math.max(sentences, 1)).toFixed(1).padStart(5);
  console.log(
    `${name.padEnd(40)} ${String(words).padStart(7)} words  marks ${per(marks)}  you ${per(reader)}  passive ${per(passives)}  clauses ${share} %`,
  );
}

/** Phrases on lines that differ from the last commit. */
function listChanged(): void {
  const changed = changedLines();
  const found = Object.values(repositoryPhrases())
    .flat()
    .filter(({ path, line }) => changed.get(path)?.has(line));
  for (const { path, line, name, instead } of found)
    console.log(`${path}:${line} "${name}": write ${instead}`);
  if (found.length > 0) process.exitCode = 1;
}

function changedLines(): Map<string, Set<number>> {
  const diff = execFileSync("git", ["diff", "-U0", "HEAD"], {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  const changed = new Map<string, Set<number>>();
  let lines = new Set<number>();
  for (const line of diff.split("\n")) {
    const file = /^\+\+\+ b\/(.*)/.exec(line)?.[1];
    const hunk = /^@@ \S+ \+(\d+)(?:,(\d+))?/.exec(line);
    if (file !== undefined) {
      lines = new Set();
      changed.set(file, lines);
    } else if (hunk !== null) for (let i = 0; i < Number(hunk[2] ?? 1); i++) lines.add(Number(hunk[1]) + i);
  }
  return changed;
}
