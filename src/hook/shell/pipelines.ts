/** Recognizes programs in a pipeline that print only the names of existing files, and no text from people or agents. */

export interface PipelineProgram {
  name: string;
  texts: readonly string[];
}

const FINDS = /^(?:find|fd|ls)$/;
const FILTERS = /^(?:sort|uniq|head|tail|grep|egrep|fgrep)$/;
/** `xargs` gives quotes and backslashes a meaning. */
const PLAIN = /^[\w./@:+,-]*$/;
const NAMES_ONLY = /^(?:-[a-km-zA-KM-Z]*[lL][a-zA-Z]*|--files(?:-with-matches|-without-match)?|--name-only)$/;

/** Whether the program only lists files. `first`: it starts the pipeline, so it must be the one that finds them. */
export function listsFiles({ name, texts }: PipelineProgram, first: boolean): boolean {
  // A filter with a file argument reads that file instead of the list.
  if (!first) return FILTERS.test(name) && texts.filter((text) => !text.startsWith("-")).length <= 1;
  if (FINDS.test(name)) return !texts.some((text) => /^-(?:printf|exec|execdir|ok|okdir)$/.test(text));
  if (name === "echo") return texts.every((text) => PLAIN.test(text) && !text.startsWith("-"));
  if (name === "git")
    return texts[0] === "ls-files" || (/^(?:diff|grep)$/.test(texts[0] ?? "") && hasNames(texts));
  return /^(?:rg|ag|[ef]?grep)$/.test(name) && hasNames(texts);
}

const hasNames = (texts: readonly string[]): boolean => texts.some((text) => NAMES_ONLY.test(text));
