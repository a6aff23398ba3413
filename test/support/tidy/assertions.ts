/**
 * Finds tests that assert nothing. A test asserts where its text has `expect` or `assert`, waits for a condition that
 * must come (`until`, `waitFor`), or names a function of its file, or one that it imports, which does. It goes by the
 * indentation that the formatter keeps.
 */
import type { SourceFile } from "../files.ts";
import { importsOf } from "./imports.ts";

const ASSERTS = /\bexpect(?:TypeOf)?\b|\bassert\w*\b|\buntil\(|\.waitFor\(/;
const TEST = /^(?:it|test)\b(?!:)/;
const DECLARED = /^(?:export )?(?:async )?(?:function\*? (\w+)|(?:const|let) (\w+)\b|(\w+)\(.*\{$)/;

interface Block {
  readonly line: number;
  readonly head: string;
  readonly code: string;
  /** Without its own name. */
  readonly words: ReadonlySet<string>;
}

export function assertionProblems(files: readonly SourceFile[]): string[] {
  const asserting = assertingNames(files);
  return files
    .filter(({ path }) => path.endsWith(".test.ts"))
    .flatMap((file) =>
      blocksOf(file.code, TEST)
        .filter((block) => !asserts(block, asserting.get(file.path)!))
        .map(({ line }) => `${file.path}:${line} asserts nothing: say what is expected`),
    );
}

/** The functions of each file that assert, by themselves or through others, its own and those that it imports. */
function assertingNames(files: readonly SourceFile[]): Map<string, Set<string>> {
  const names = new Map(files.map(({ path }) => [path, new Set<string>()]));
  const read = files.map((file) => ({
    known: names.get(file.path)!,
    words: wordsOf(file.code),
    targets: importsOf(file).flatMap(({ target }) => names.get(target ?? "") ?? []),
    declared: blocksOf(file.code, DECLARED),
  }));
  for (let before = -1, now = 0; before !== now; ) {
    before = now;
    for (const { known, words, targets, declared } of read) {
      for (const names of targets) for (const name of names) if (words.has(name)) known.add(name);
      for (const block of declared) if (asserts(block, known)) known.add(nameOf(block));
    }
    now = read.reduce((sum, { known }) => sum + known.size, 0);
  }
  return names;
}

function nameOf({ head }: Block): string {
  const [, ...found] = DECLARED.exec(head)!;
  return found.find((one) => one !== undefined)!;
}

const wordsOf = (code: string): ReadonlySet<string> => new Set(code.match(/\w+/g));

function asserts({ code, words }: Block, names: ReadonlySet<string>): boolean {
  if (ASSERTS.test(code)) return true;
  for (const word of words) if (names.has(word)) return true;
  return false;
}

/** From a line that begins so to the next one that is not further in; what only closes belongs to it. */
function blocksOf(code: string, begins: RegExp): Block[] {
  const lines = code.split("\n");
  return lines.flatMap((line, at) => {
    const head = line.trimStart();
    if (!begins.test(head)) return [];
    const indent = line.length - head.length;
    let end = at + 1;
    while (end < lines.length && !isNext(lines[end]!, indent)) end++;
    const text = lines.slice(at, end).join("\n");
    return [{ line: at + 1, head, code: text, words: wordsOf(text.slice(text.search(/[(=]/))) }];
  });
}

function isNext(line: string, indent: number): boolean {
  const inner = line.trimStart();
  return inner !== "" && line.length - inner.length <= indent && !/^[)\]}`]/.test(inner);
}
