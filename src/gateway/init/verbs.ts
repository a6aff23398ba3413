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
    "create add insert new open start register upload make mkdir write append enable subscribe attach link grant assign lock install archive label pin star follow mute".split(
      " ",
    ),
  change:
    "update set edit modify patch rename move put replace change configure toggle merge sync restore".split(
      " ",
    ),
  remove:
    "delete remove drop destroy purge clear close stop unregister disable unsubscribe detach unlink revoke unassign unlock cancel uninstall unarchive unlabel unpin unstar unfollow unmute".split(
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
  install: ["uninstall"],
  archive: ["unarchive"],
  label: ["unlabel", "remove"],
  pin: ["unpin"],
  star: ["unstar"],
  follow: ["unfollow"],
  mute: ["unmute"],
};

/** Verbs whose opposite they undo, because both leave everything else as it is. */
const SWITCHES = new Set(
  "enable disable archive unarchive label unlabel lock unlock pin unpin star unstar follow unfollow mute unmute subscribe unsubscribe assign unassign".split(
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
  const whole = words.map(singular).join(" ");
  return { whole, verb, act: verb === null ? null : ACT_OF.get(verb)!, object };
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
  if (other.verb === null) return false;
  if (ENDS.has(other.verb) && other.object === done.whole) return true;
  if (done.verb === null || done.object !== other.object) return false;
  if (UNDOES[done.verb]?.includes(other.verb)) return true;
  return SWITCHES.has(done.verb) && SWITCHES.has(other.verb) && UNDOES[other.verb]?.[0] === done.verb;
}
