/**
 * Parses a program's words by its row in the tables. A row lists only options that are known to be harmless, so any
 * other option makes the command unknown.
 */
import { isProjectClass, type ShellClass } from "./classes.ts";

/** Value of an option: none; in this word or the next; or optional and in this word only. */
type Arity = "none" | "value" | "attached";

interface OptionRule {
  arity: Arity;
  /** The value must be a plain word, such as a name, a number or a list of names, but not a path. */
  plain: boolean;
  into: ShellClass | null;
}

export interface ProgramRow {
  class: ShellClass;
  options: ReadonlyMap<string, OptionRule>;
  /** Complete words that are allowed unchanged. */
  exact: ReadonlySet<string>;
  /** Options are complete words after one dash, so letters cannot be combined. */
  one_dash: boolean;
  /** Allows numbers as options, such as `-5`. */
  numbers: boolean;
  /** Allows every word, including options. */
  any: boolean;
  /** Maximum number of plain words. A further one gives the class `beyond`. */
  most: number;
  beyond: ShellClass;
  /** Plain words must match this pattern. */
  words: RegExp | null;
  /** Words after `--` go to another program, whose usual options are known. */
  passes_on: boolean;
  /** One of these options is required. Without them the program changes installed versions. */
  must: readonly string[];
  /** Lock files that pin the installed versions. The run must not have changed them. */
  locks: readonly string[];
  /** The first of the lock files must exist, because the program would resolve versions without it. */
  locked: boolean;
}

export interface OptionsRead {
  classes: ShellClass[];
  plain: string[];
  /** Index of the first plain word, or the number of words. */
  first: number;
}

/** A value that cannot name a file or a program. */
const PLAIN_VALUE = /^[\w,:.@%+=*^~!-]*$/;

/** Parses one line of the tables. The header of the tables explains its form. */
export function programRow(line: string): ProgramRow {
  const [kind, ...tokens] = line.trim().split(/\s+/);
  const options = new Map<string, OptionRule>();
  const row = {
    class: kind as ShellClass,
    options,
    exact: new Set<string>(),
    one_dash: false,
    numbers: false,
    any: false,
    most: Number.POSITIVE_INFINITY,
    beyond: "unknown" as ShellClass,
    words: null as RegExp | null,
    passes_on: false,
    must: [] as readonly string[],
    locks: [] as readonly string[],
    locked: false,
  };
  for (const token of tokens) {
    const [text = "", into] = token.split(">") as [string, ShellClass?];
    if (text.startsWith("=")) row.exact.add(text.slice(1));
    else if (text.startsWith("must=")) row.must = text.slice("must=".length).split("|");
    else if (/^lock(?:ed)?=/.test(text)) {
      row.locks = text.slice(text.indexOf("=") + 1).split("|");
      row.locked = text.startsWith("locked=");
    } else if (text.startsWith("-")) addOption(options, text, into ?? null);
    else if (text === "one-dash") row.one_dash = true;
    else if (text === "#") row.numbers = true;
    else if (text === "any") row.any = true;
    else if (text === "...") row.passes_on = true;
    else if (text.startsWith("@")) {
      row.most = Number(text.slice(1));
      row.beyond = into ?? "unknown";
    } else row.words = new RegExp(`^(?:${text})$`);
  }
  return row;
}

function addOption(options: Map<string, OptionRule>, text: string, into: ShellClass | null): void {
  const plain = text.endsWith("%");
  const rule = (how: string | undefined): OptionRule => ({ arity: ARITIES[how ?? ""]!, plain, into });
  const [, long, how] = /^(--[^=?%]+)([=?]?)%?$/.exec(text) ?? [];
  if (long !== undefined) options.set(long, rule(how));
  else
    for (const [, letter, own] of text.slice(1).matchAll(/([^:?%])([:?]?)/g))
      options.set(`-${letter}`, rule(own));
}

const ARITIES: Readonly<Record<string, Arity>> = { "": "none", "=": "value", ":": "value", "?": "attached" };

/** Parses the options. With `stop`, they end at the first plain word, which is another program. */
export function readOptions(row: ProgramRow, texts: readonly string[], stop = false): OptionsRead {
  const reader = new OptionReader(row, texts);
  return reader.read(stop);
}

class OptionReader {
  private readonly row: ProgramRow;
  private readonly texts: readonly string[];
  private readonly classes: ShellClass[] = [];
  private readonly plain: string[] = [];
  private first = -1;
  private at = 0;

  constructor(row: ProgramRow, texts: readonly string[]) {
    this.row = row;
    this.texts = texts;
  }

  read(stop: boolean): OptionsRead {
    const { row, texts } = this;
    for (; this.at < texts.length; this.at++) {
      const text = texts[this.at]!;
      if (text === "--" && !row.any) {
        this.at++;
        break;
      }
      if (row.any || text === "-" || !text.startsWith("-")) this.isPlain(text);
      else this.option(text);
      if (stop && this.first >= 0) return this.done();
    }
    const behind = texts.slice(this.at);
    if (stop && behind.length > 0) this.first = this.at;
    else if (row.passes_on) this.passedOn(behind);
    else for (const text of behind) this.isBehind(text);
    return this.done();
  }

  private done(): OptionsRead {
    const { row, plain, classes } = this;
    if (plain.length > row.most) classes.push(row.beyond);
    if (row.words !== null && plain.some((text) => !row.words!.test(text))) classes.push("unknown");
    const isThere = (option: string) =>
      this.texts.some((text) => text === option || text.startsWith(`${option}=`));
    if (row.must.length > 0 && !row.must.some(isThere)) classes.push("packages");
    return { classes, plain, first: this.first < 0 ? this.texts.length : this.first };
  }

  /** A build tool can hand an option after `--` to another program. */
  private isBehind(text: string): void {
    if (text.startsWith("-") && isProjectClass(this.row.class)) this.classes.push("unknown");
    this.isPlain(text);
  }

  private isPlain(text: string): void {
    if (this.first < 0) this.first = this.at;
    this.plain.push(text);
  }

  private option(text: string): void {
    if (this.row.exact.has(text) || (this.row.numbers && /^-\d+$/.test(text))) return;
    if (this.row.one_dash) this.long(text.replace(/^--?/, "--"));
    else if (text.startsWith("--")) this.long(text);
    else this.letters(text);
  }

  private long(text: string): void {
    const equals = text.indexOf("=");
    const name = equals < 0 ? text : text.slice(0, equals);
    const value = equals < 0 ? null : text.slice(equals + 1);
    const rule = this.row.options.get(name);
    // Abbreviated long options are not resolved and therefore unknown.
    if (rule === undefined || (rule.arity === "none" && value !== null)) this.classes.push("unknown");
    else this.applies(rule, value);
  }

  private letters(text: string): void {
    for (let i = 1; i < text.length; i++) {
      const rule = this.row.options.get(`-${text[i]}`);
      if (rule === undefined) return void this.classes.push("unknown");
      const rest = text.slice(i + 1);
      this.applies(rule, rule.arity === "none" || rest === "" ? null : rest);
      if (rule.arity !== "none") return;
    }
  }

  private applies(rule: OptionRule, attached: string | null): void {
    if (rule.into !== null) this.classes.push(rule.into);
    if (rule.arity === "none") return;
    const value = attached ?? (rule.arity === "value" ? this.texts[++this.at] : "");
    if (value === undefined || (rule.plain && !PLAIN_VALUE.test(value))) this.classes.push("unknown");
  }

  /** Checks arguments for a script: the usual options of test and build tools, and plain words. */
  private passedOn(texts: readonly string[]): void {
    for (const text of texts) if (text.startsWith("-") && !PASSED_ON.test(text)) this.classes.push("unknown");
  }
}

const PASSED_ON =
  /^(?:-[tkguwvqsxDWA]|--(?:grep|run|watch|coverage|verbose|silent|bail|ci|headed|update|fix|check|write|quiet|no-coverage|runInBand|updateSnapshot|testPathPatterns?|testNamePattern|test-name-pattern|reporter|maxWorkers|nocapture|test-threads|ignored|noEmit|strict|minify|mode|help|version)(?:=[\w,:.@%+ -]*)?)$/;
