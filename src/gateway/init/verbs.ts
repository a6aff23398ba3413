/** Guesses a tool's effect from its name. Every guess is marked as one in the draft. */

export type VerbKind = "read" | "create" | "change" | "remove" | "send";

const VERBS: Record<VerbKind, readonly string[]> = {
  read: [
    ..."get list read search find query describe show fetch view count check status lookup stat tree head tail".split(
      " ",
    ),
    ..."info inspect preview validate test ping echo diff compare browse export print summarize explain poll wait".split(
      " ",
    ),
  ],
  create:
    "create add insert new open start register upload make mkdir write append enable subscribe attach link grant assign lock".split(
      " ",
    ),
  change:
    "update set edit modify patch rename move put replace change configure toggle merge sync restore".split(
      " ",
    ),
  remove:
    "delete remove drop destroy purge clear close stop unregister disable unsubscribe detach unlink revoke unassign unlock cancel".split(
      " ",
    ),
  send: "send email mail notify publish post pay transfer charge refund execute exec run deploy invoke submit call trigger approve".split(
    " ",
  ),
};

const ACT_OF = new Map(
  Object.entries(VERBS).flatMap(([act, verbs]) => verbs.map((verb) => [verb, act as VerbKind] as const)),
);

/** Verbs that undo a verb. */
const UNDOES: Record<string, readonly string[]> = {
  create: ["delete", "remove", "destroy"],
  add: ["remove", "delete"],
  insert: ["delete", "remove"],
  new: ["delete", "remove"],
  upload: ["delete", "remove"],
  make: ["delete", "remove"],
  register: ["unregister", "deregister", "delete", "remove"],
  open: ["close"],
  start: ["stop", "cancel"],
  enable: ["disable"],
  subscribe: ["unsubscribe"],
  attach: ["detach"],
  link: ["unlink"],
  grant: ["revoke"],
  assign: ["unassign"],
  lock: ["unlock"],
};

export interface ParsedToolName {
  /** The verb of the name, or null. */
  verb: string | null;
  act: VerbKind | null;
  /** The object of the verb: the rest of the name, in the singular. */
  object: string;
}

export function parseToolName(name: string): ParsedToolName {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());
  // A verb is the first or the last word (contacts.create). Anywhere else the word is probably a noun.
  const at = [0, words.length - 1].find((i) => ACT_OF.has(words[i] ?? ""));
  const object = words
    .filter((_, i) => i !== at)
    .map(singular)
    .join(" ");
  const verb = at === undefined ? null : words[at]!;
  return { verb, act: verb === null ? null : ACT_OF.get(verb)!, object };
}

/** Approximate singular, good enough to match `entities` with `entity`. */
function singular(word: string): string {
  if (word.length <= 3 || word.endsWith("ss")) return word;
  return word
    .replace(/ies$/, "y")
    .replace(/(ss|x|ch|sh)es$/, "$1")
    .replace(/([^s])s$/, "$1");
}

/** Whether the second tool looks like the undo of the first. */
export function isUndoOf(done: ParsedToolName, other: ParsedToolName): boolean {
  if (done.verb === null || other.verb === null || done.object !== other.object) return false;
  return UNDOES[done.verb]?.includes(other.verb) ?? false;
}
