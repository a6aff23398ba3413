/**
 * Splits a shell script into simple commands and removes quotes and escapes. Nothing is executed or guessed: `odd`
 * names everything that cannot be parsed, and a word whose text depends on the execution is `dynamic`.
 */
import type { CommandPart, ShellOperator, ShellWord } from "./command-parts.ts";
import { plainWord } from "./program-input.ts";
import { HARMLESS_VARIABLES, type KnownVariables, learnVariables } from "./variables.ts";

interface Script {
  parts: CommandPart[];
  odd: string[];
}

export const SHELL_KEYWORDS = /^(?:then|do|else|if|elif|while|until|!|\{|time)$/;
export const BLOCK_END = /^(?:fi|done|esac|\}|in)$/;

const DEPTH = 6;
const MAX_CHARS = 65_536;

/** Enclosing subshells of a text, and the last number in use. */
interface Surrounding {
  shells: readonly number[];
  numbered: { last: number };
}

export function parseScript(
  text: string,
  known: KnownVariables,
  depth = 0,
  around: Surrounding = { shells: [], numbered: { last: 0 } },
): Script {
  if (depth > DEPTH || text.length > MAX_CHARS) return { parts: [], odd: ["a command this deep or long"] };
  return new WordReader(text, known, depth, around).read();
}

const OPENS = /^(?:if|while|until|for|select|case|function|\{)$/;
const CLOSES = /^(?:fi|done|esac|\})$/;

const OPERATORS = /^(?:&&|\|\||\|&|;;|[;&|()\n])/;
const REDIRECT = /^(?:\d*|&)(?:<<<|<<-?|<>|>>|>\||>&|<&|<|>)/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
/** Numbers that the shell sets. They name no file and no program. */
const COUNTERS = /^[?#!$]/;

/** Their output is a number. */
const COUNTS_PROCESSORS =
  /^\s*(?:nproc(?: --all)?|getconf _NPROCESSORS_ONLN|sysctl -n hw\.(?:nc|logicalc|physicalc)pu)\s*$/;

class WordReader {
  private at = 0;
  private readonly parts: CommandPart[] = [];
  private readonly odd: string[] = [];
  private part: CommandPart;
  private nested = 0;
  private shells: number[];
  private in_quotes = false;
  private word: ShellWord | null = null;
  private waiting: { write: boolean; feeds: "document" | "string" | null } | null = null;
  private documents: { end: string; part: CommandPart }[] = [];

  private readonly text: string;
  private readonly known: KnownVariables;
  private readonly depth: number;

  private readonly numbered: { last: number };

  constructor(text: string, known: KnownVariables, depth: number, { shells, numbered }: Surrounding) {
    this.text = text;
    this.known = known;
    this.depth = depth;
    this.shells = [...shells];
    this.numbered = numbered;
    this.part = this.emptyPart("");
  }

  read(): Script {
    while (this.at < this.text.length) this.step();
    this.endPart("");
    if (this.nested !== 0) this.odd.push("a block without an end");
    if (this.documents.length > 0) this.odd.push("a here-document without an end");
    return { parts: this.parts, odd: this.odd };
  }

  private step(): void {
    const rest = this.text.slice(this.at, this.at + 8);
    const char = rest[0]!;
    const redirect = REDIRECT.exec(rest)?.[0];
    const operator = OPERATORS.exec(rest)?.[0];
    if (char === " " || char === "\t" || char === "\r") this.space();
    else if (char === "#" && this.word === null) this.comment();
    else if (rest.startsWith("<(") || rest.startsWith(">(")) this.commandFile(rest[0] === "<");
    else if (redirect !== undefined && (this.word === null || !/^\d/.test(redirect))) this.redirect(redirect);
    else if (operator !== undefined) this.operator(operator);
    else if (char === "'") this.quoted();
    else if (char === '"') this.doubleQuoted();
    else if (char === "\\") this.escaped();
    else if (char === "$" || char === "`") this.dollar();
    else {
      this.current().glob ||= /[*?[{]/.test(char);
      this.add(char, 1);
    }
  }

  private space(): void {
    this.endWord();
    this.at++;
  }

  private current(): ShellWord {
    this.word ??= plainWord("");
    return this.word;
  }

  private add(text: string, chars: number): void {
    this.current().text += text;
    this.at += chars;
  }

  private comment(): void {
    const end = this.text.indexOf("\n", this.at);
    this.at = end < 0 ? this.text.length : end;
  }

  private operator(operator: string): void {
    this.at += operator.length;
    this.endWord();
    // A name before `(` defines a function, and a closing bracket cannot be followed by words of a command.
    if (operator === "(" && this.part.words.some(({ text }) => !SHELL_KEYWORDS.test(text)))
      this.odd.push("a function");
    this.part.piped = operator === "|" || operator === "|&";
    this.endPart(operator as ShellOperator);
    if (operator === "(") this.shells.push(++this.numbered.last);
    if (operator === ")" && this.shells.pop() === undefined) this.odd.push("a bracket without a beginning");
    this.part = this.emptyPart(operator as ShellOperator);
    if (operator === ";;") this.odd.push("case");
    if (operator === "\n") this.readDocuments();
  }

  private redirect(found: string): void {
    this.endWord();
    this.at += found.length;
    const feeds = found.endsWith("<<<") ? "string" : /<<-?$/.test(found) ? "document" : null;
    this.waiting = { write: found.includes(">"), feeds };
  }

  private quoted(): void {
    const end = this.text.indexOf("'", this.at + 1);
    if (end < 0) this.odd.push("a quote without an end");
    const stop = end < 0 ? this.text.length : end;
    this.add(this.text.slice(this.at + 1, stop), stop + 1 - this.at);
  }

  private doubleQuoted(): void {
    this.current();
    this.at++;
    this.in_quotes = true;
    while (this.at < this.text.length && this.text[this.at] !== '"') {
      const char = this.text[this.at]!;
      if (char === "\\" && /["\\$`\n]/.test(this.text[this.at + 1] ?? "")) this.escaped();
      else if (char === "$" || char === "`") this.dollar();
      else this.add(char, 1);
    }
    if (this.at >= this.text.length) this.odd.push("a quote without an end");
    this.in_quotes = false;
    this.at++;
  }

  private escaped(): void {
    const next = this.text[this.at + 1] ?? "";
    this.add(next === "\n" ? "" : next, 2);
  }

  private dollar(): void {
    const rest = this.text.slice(this.at);
    const braced = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}/.exec(rest);
    const name = braced?.[1] ?? NAME.exec(rest.slice(1))?.[0];
    this.current().expanded = true;
    this.current().loose ||= !this.in_quotes;
    if (rest.startsWith("$((")) this.odd.push("arithmetic");
    if (rest[0] === "`") this.nestedScript(1, "`");
    else if (rest.startsWith("$(")) this.nestedScript(2, ")");
    else if (name !== undefined) this.variable(name, braced?.[0].length ?? name.length + 1);
    else if (COUNTERS.test(rest.slice(1))) this.add("0", 2);
    else {
      // Includes translated quotes, `$'..'`, and the arguments of a script, `$1`.
      Object.assign(this.current(), { dynamic: true, inherited: true });
      this.at++;
    }
  }

  private variable(name: string, chars: number): void {
    const value = this.known.get(name) ?? null;
    const word = this.current();
    const behind = this.text
      .slice(this.at + chars, this.at + chars + 2)
      .replace(this.in_quotes ? /^"/ : /^/, "");
    const whole = word.text === "" && /^(?:$|[\s;&|()<>])/.test(behind);
    // Without quotes, the shell splits the value into words and expands its wildcards.
    const split =
      !this.in_quotes && /[\s*?[\]{}~]/.test(value?.text ?? "") && !/^~(?=\/|$)/.test(value?.text ?? "");
    if (value === null || split) word.dynamic = true;
    else if (value.several && !whole) word.several = true;
    // In quotes, a file name stays one word.
    else if (value.glob) word.glob = true;
    if (!this.known.has(name) && !HARMLESS_VARIABLES.test(name)) word.inherited = true;
    this.add(value?.text ?? `$${name}`, chars);
  }

  /** A command's output or input under the name of a file. */
  private commandFile(is_read: boolean): void {
    const isWhole = this.word === null;
    this.nestedScript(2, ")");
    if (is_read && isWhole) this.current().of_command = true;
  }

  /** Parses a nested script, whose commands run too. */
  private nestedScript(open: number, close: string): void {
    const start = this.at + open;
    const end = this.closing(start, close);
    if (end < 0) this.odd.push("a substitution without an end");
    const inner = this.text.slice(start, end < 0 ? undefined : end);
    const { parts, odd } = parseScript(inner, this.known, this.depth + 1, {
      shells: [...this.shells, ++this.numbered.last],
      numbered: this.numbered,
    });
    this.parts.push(...parts);
    this.odd.push(...odd);
    this.current().expanded = true;
    if (close === ")" && COUNTS_PROCESSORS.test(inner)) this.current().text += "8";
    else this.current().dynamic = true;
    this.at = end < 0 ? this.text.length : end + 1;
  }

  private closing(from: number, close: string): number {
    let open = 1;
    for (let at = from; at < this.text.length; at++) {
      const char = this.text[at]!;
      if (char === "\\") at++;
      else if (char === "'" && close === ")") {
        const end = this.text.indexOf("'", at + 1);
        if (end < 0) return -1;
        at = end;
      } else if (char === "(" && close === ")") open++;
      else if (char === close && --open === 0) return at;
    }
    return -1;
  }

  private endWord(): void {
    const { word, waiting } = this;
    if (word === null) return;
    this.word = null;
    if (waiting === null) this.part.words.push(word);
    else if (waiting.feeds === "document") this.documents.push({ end: word.text, part: this.part });
    else if (waiting.feeds === "string") this.part.fed = word.text;
    else if (!/^(?:\d+|-)$/.test(word.text)) this.part.redirects.push({ write: waiting.write, target: word });
    this.waiting = null;
  }

  private endPart(after: ShellOperator): void {
    this.endWord();
    const { part } = this;
    part.after = after;
    this.countBlocks(part);
    if (part.words.length === 0 && part.redirects.length === 0) return;
    this.parts.push(part);
    const alone = part.nested === 0 && part.shells.length === 0 && !part.piped && !part.reads_pipe;
    learnVariables(this.known, part, alone && after !== "&" && /^[;\n]?$/.test(part.before));
  }

  private countBlocks(part: CommandPart): void {
    for (const { text, expanded } of part.words) {
      if (expanded) break;
      if (OPENS.test(text)) this.nested++;
      else if (CLOSES.test(text)) this.nested--;
      if (!SHELL_KEYWORDS.test(text)) break;
    }
    part.nested = this.nested;
  }

  private emptyPart(before: ShellOperator): CommandPart {
    return {
      words: [],
      redirects: [],
      fed: null,
      piped: false,
      reads_pipe: before === "|" || before === "|&",
      before,
      after: "",
      nested: this.nested,
      shells: [...this.shells],
    };
  }

  private readDocuments(): void {
    for (const { end, part } of this.documents.splice(0)) {
      const lines: string[] = [];
      for (;;) {
        if (this.at >= this.text.length) {
          this.odd.push("a here-document without an end");
          break;
        }
        const stop = this.text.indexOf("\n", this.at);
        const line = this.text.slice(this.at, stop < 0 ? undefined : stop);
        this.at = stop < 0 ? this.text.length : stop + 1;
        if (line.trim() === end) break;
        lines.push(line);
      }
      part.fed = lines.join("\n");
      if (/\$\(|`/.test(part.fed)) this.odd.push("a substitution in a here-document");
    }
  }
}
