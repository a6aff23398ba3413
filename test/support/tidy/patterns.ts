/**
 * Regular expressions take time in proportion to their input. With one that takes the square of it, a text of some
 * thousand characters stops a server: `/0+$/` did, on a number with many zeros before its last digit.
 */
import { analyse } from "scslre";
import type { SourceFile } from "../files.ts";

/** Patterns that are slower on long input, and why they never get any. */
const SHORT_INPUT: Readonly<Record<string, string>> = {
  "/\\B(?=(?:\\d{3})+$)/g": "an amount of at most 15 digits",
  "/^(\\S+)\\s+(\\S+)(?:\\s+(.+))?$/s": "never fails after its second word, so it never starts again",
  "/^(?:-x|--exe[a-z]*)(?:=|(?=[^-=])|$)(.*)$/s": "never fails after its first part",
  "/\\[[^\\]]*\\]|\\{[^}]*\\}|[*?[\\]{}]+/g":
    "one part of a path in a command, judged in the user's own process",
  "/\\\\[pP](?:\\{[^}]*\\}|.)|\\\\.|\\[\\^?\\]?(?:\\\\.|[^\\]\\\\])*\\]|\\((?:\\?[a-z]+)?|\\)|\\{(\\d+)(?:,(\\d*))?\\}|./gs":
    "a pattern of a policy, whose length is limited",
  "/^(postgres(?:ql)?:\\/\\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s": "a setting",
};

/** Finds slow patterns, and exceptions that no file needs any more. */
export function patternProblems(files: readonly SourceFile[]): string[] {
  const used = new Set<string>();
  const slow = new Map<string, boolean>();
  const problems = files.flatMap(({ path, patterns }) =>
    patterns.flatMap((pattern) => {
      if (Object.hasOwn(SHORT_INPUT, pattern)) used.add(pattern);
      else {
        if (!slow.has(pattern)) slow.set(pattern, isSlow(pattern));
        if (slow.get(pattern))
          return [
            `${path}: ${pattern} takes the square of its input's length; let it begin at one place, as /(?<!0)0+$/`,
          ];
      }
      return [];
    }),
  );
  const needless = Object.keys(SHORT_INPUT).filter((pattern) => !used.has(pattern));
  return [...problems, ...needless.map((pattern) => `${pattern}: no file has this pattern`)];
}

function isSlow(pattern: string): boolean {
  const end = pattern.lastIndexOf("/");
  const literal = { source: pattern.slice(1, end), flags: pattern.slice(end + 1) };
  return analyse(literal, { reportTypes: { Move: true } }).reports.length > 0;
}
