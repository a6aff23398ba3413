/** The kill-switch file. While it exists, no new call is allowed, and its content is the reason. */
import { readFileSync, statSync } from "node:fs";
import { cutText } from "../kernel/text/truncate.ts";

const LONGEST_REASON = 500;

export function killSwitch(file: string | null): () => string | null {
  if (file === null) return () => null;
  return () => {
    try {
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined) return null;
      const text =
        found.isFile() && found.size > 0 ? cutText(readFileSync(file, "utf8"), LONGEST_REASON).trim() : "";
      return text === "" ? "the kill-switch file exists" : text;
    } catch (error) {
      // Fail closed if the file cannot be checked.
      return `the kill-switch file cannot be checked (${(error as NodeJS.ErrnoException).code ?? "unknown error"})`;
    }
  };
}
