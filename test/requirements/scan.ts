/** Finds which statements the tests say they verify, and which are still pending. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filesUnder, ROOT, sourceFile } from "../support/files.ts";
import { lineAt } from "../support/source.ts";

export interface Mention {
  readonly id: string;
  /** `path:line` of the call. */
  readonly where: string;
}

export interface Scan {
  readonly mentions: readonly Mention[];
  /** Calls that cannot be read, because an argument is not a string literal. */
  readonly unreadable: readonly string[];
}

const CALL = /(?<![\w$.])verifies\s*\(/g;
const LITERAL = /\s*(?:"([^"\\\n]*)"|'([^'\\\n]*)')\s*(,?)/y;
const CLOSE = /\s*\)/y;
const PENDING = join(ROOT, "test/requirements/pending.txt");

export function scanTests(): Scan {
  const mentions: Mention[] = [];
  const unreadable: string[] = [];
  for (const path of ["src", "test"].flatMap((folder) => filesUnder(folder, ".test.ts"))) {
    const { code, withStrings } = sourceFile(path);
    for (const call of code.matchAll(CALL)) {
      const where = `${path}:${lineAt(code, call.index)}`;
      const ids = literalArguments(withStrings, call.index + call[0].length);
      if (ids === undefined) unreadable.push(where);
      else mentions.push(...ids.map((id) => ({ id, where })));
    }
  }
  return { mentions, unreadable };
}

/** The string arguments from just after the parenthesis on; undefined when there is anything else or nothing. */
export function literalArguments(text: string, from: number): string[] | undefined {
  const ids: string[] = [];
  let at = from;
  for (;;) {
    CLOSE.lastIndex = at;
    if (ids.length > 0 && CLOSE.test(text)) return ids;
    LITERAL.lastIndex = at;
    const match = LITERAL.exec(text);
    if (match === null) return undefined;
    ids.push(match[1] ?? match[2] ?? "");
    at = LITERAL.lastIndex;
    CLOSE.lastIndex = at;
    if (match[3] === "" && !CLOSE.test(text)) return undefined;
  }
}

/** The ids that no test verifies yet: one a line, so that two branches merge. */
export function readPending(): string[] {
  return readFileSync(PENDING, "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/** Takes ids off the pending list, leaving the other lines and the comments as they are. */
export function prunePending(verified: ReadonlySet<string>): number {
  const lines = readFileSync(PENDING, "utf8").split("\n");
  const left = lines.filter((line) => !verified.has(line.trim()));
  if (left.length !== lines.length) writeFileSync(PENDING, left.join("\n"));
  return lines.length - left.length;
}
