/** Which programs of a pipeline print names of files that they found, and nothing that a person or an agent wrote. */

export interface Producer {
  name: string;
  texts: readonly string[];
}

const FINDS = /^(?:find|fd|ls)$/;
const FILTERS = /^(?:sort|uniq|head|tail|grep|egrep|fgrep)$/;
/** Quotes and backslashes mean something to `xargs`. */
const PLAIN = /^[\w./@:+,-]*$/;
const NAMES_ONLY = /^(?:-[a-zA-Z]*[lL][a-zA-Z]*|--files(?:-with-matches|-without-match)?|--name-only)$/;

/** `first`: it begins the pipeline, so that it is the one that finds. */
export function listsFiles({ name, texts }: Producer, first: boolean): boolean {
  // A file that a filter is given is read, not what was found.
  if (!first) return FILTERS.test(name) && texts.filter((text) => !text.startsWith("-")).length <= 1;
  if (FINDS.test(name)) return !texts.some((text) => /^-(?:printf|exec|execdir|ok|okdir)$/.test(text));
  if (name === "echo") return texts.every((text) => PLAIN.test(text) && !text.startsWith("-"));
  if (name === "git")
    return texts[0] === "ls-files" || (/^(?:diff|grep)$/.test(texts[0] ?? "") && hasNames(texts));
  return /^(?:rg|ag|[ef]?grep)$/.test(name) && hasNames(texts);
}

const hasNames = (texts: readonly string[]): boolean => texts.some((text) => NAMES_ONLY.test(text));
