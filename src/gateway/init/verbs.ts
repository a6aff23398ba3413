/** Guesses a tool's effect from its name. Every guess is marked as one in the draft. */

export type VerbKind = "read" | "create" | "change" | "remove" | "send";

const VERBS: Record<VerbKind, readonly string[]> = {
  read: [
    ..."get list read search find query describe show fetch retrieve view count check status lookup stat tree head tail".split(
      " ",
    ),
    ..."info inspect preview validate test ping echo diff compare browse export print summarize explain poll wait".split(
      " ",
    ),
  ],
  create:
    "create add insert new open start register upload make mkdir write append enable subscribe attach link grant assign lock install archive label pin star follow mute connect mount pause hide join ban".split(
      " ",
    ),
  change:
    "update set edit modify patch rename move put replace change configure toggle merge sync restore".split(
      " ",
    ),
  remove:
    "delete remove drop destroy purge clear close stop unregister disable unsubscribe detach unlink revoke unassign unlock cancel uninstall unarchive unlabel unpin unstar unfollow unmute disconnect unmount resume unhide leave unban".split(
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
  new: ["delete", "remove", "close"],
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
  install: ["uninstall"],
  archive: ["unarchive"],
  label: ["unlabel", "remove"],
  pin: ["unpin"],
  star: ["unstar"],
  follow: ["unfollow"],
  mute: ["unmute"],
  connect: ["disconnect"],
  mount: ["unmount", "umount"],
  pause: ["resume", "unpause"],
  hide: ["unhide"],
  join: ["leave"],
  ban: ["unban"],
};

/** Verbs whose opposite they undo, because both leave everything else as it is. */
const SWITCHES = new Set(
  "enable disable archive unarchive label unlabel lock unlock pin unpin star unstar follow unfollow mute unmute hide unhide ban unban mount unmount subscribe unsubscribe assign unassign".split(
    " ",
  ),
);

/** Verbs that end what a tool without a verb in its name began, such as `port_forward` and `stop_port_forward`. */
const ENDS = new Set(["stop", "cancel", "close", "delete", "remove", "undo"]);

/** Verbs of an action, anywhere in a description. */
const ACTIONS =
  "list|get|read|show|view|describe|search|find|set|create|add|update|edit|modify|change|delete|remove|rename|write|start|stop|restart|enable|disable|install|uninstall|switch|send|move|put|clear|reset";
const AND = "(?:\\s*(?:,|/|\\||&|\\bor\\b|\\band\\b))+\\s*";
/** Two verbs of the same form, with at most two words after the first: "list pods, or delete them". */
const TWO_ACTIONS = new RegExp(`\\b(${ACTIONS})(s?)(?:\\s+[\\w-]+){0,2}${AND}(${ACTIONS})\\2\\b`, "gi");
const READING = /^(?:list|get|read|show|view|describe|search|find)$/i;

/** True if a text names several actions, and one does more than read: "list, get, or set the context". */
export function namesSeveralActions(text: string): boolean {
  for (let at = 0; ; ) {
    TWO_ACTIONS.lastIndex = at;
    const found = TWO_ACTIONS.exec(text);
    if (found === null) return false;
    const [whole, first, ending, second] = found;
    if (!READING.test(first!) || !READING.test(second!)) return true;
    // The second action can be the first of the next pair.
    at = found.index + whole.length - second!.length - ending!.length;
  }
}

export interface ParsedToolName {
  /** All words of the name, in the singular. */
  whole: string;
  /** The verb of the name, or null. */
  verb: string | null;
  act: VerbKind | null;
  /** The object of the verb: the rest of the name, in the singular. */
  object: string;
  /** Whether the name has the object in the plural. */
  many: boolean;
}

const ARTICLES = new Set(["a", "an", "the"]);

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.toLowerCase())
    .filter((word) => word !== "" && !ARTICLES.has(word));
}

/** Parses the names of one server's tools, without a word that all of them begin with, such as its own name. */
export function toolNameParser(names: readonly string[]): (name: string) => ParsedToolName {
  const [first = [], ...others] = names.map(wordsOf);
  const word = first[0] ?? "";
  const isPrefix =
    others.length > 0 &&
    !ACT_OF.has(word) &&
    [first, ...others].every((words) => words.length > 1 && words[0] === word);
  return (name) => parseToolName(name, isPrefix ? 1 : 0);
}

/** `skipped` is the number of words before the name itself. */
export function parseToolName(name: string, skipped = 0): ParsedToolName {
  const words = wordsOf(name).slice(skipped);
  // A verb is the first or the last word (contacts.create). Anywhere else the word is probably a noun.
  const at = [0, words.length - 1].find((i) => ACT_OF.has(words[i] ?? ""));
  const named = words.filter((_, i) => i !== at);
  const object = named.map(singular).join(" ");
  const last = named.at(-1) ?? "";
  const many = singular(last) !== last;
  const verb = at === undefined ? null : words[at]!;
  const whole = words.map(singular).join(" ");
  return { whole, verb, act: verb === null ? null : ACT_OF.get(verb)!, object, many };
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
  // One call that makes several things is not undone by one that ends a single thing.
  if (other.verb === null || (done.many && !other.many)) return false;
  if (ENDS.has(other.verb) && other.object === done.whole) return true;
  if (done.verb === null || done.object !== other.object) return false;
  if (UNDOES[done.verb]?.includes(other.verb)) return true;
  return SWITCHES.has(done.verb) && SWITCHES.has(other.verb) && UNDOES[other.verb]?.[0] === done.verb;
}
