/** Operations and fragments of a GraphQL document, as far as a decision needs them. Subscriptions are refused. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { GraphqlError, type GraphqlToken, graphqlTokens } from "./tokens.ts";

/** A value in a document, in which variables are not filled in yet. */
export type GraphqlValue =
  | { readonly variable: string }
  | { readonly literal: JsonValue }
  | { readonly list: readonly GraphqlValue[] }
  | { readonly members: ReadonlyMap<string, GraphqlValue> };

export interface GraphqlField {
  readonly name: string;
  /** Whether the field has no alias and no directive, which would change its meaning or its name in the answer. */
  readonly isPlain: boolean;
  readonly args: ReadonlyMap<string, GraphqlValue>;
  readonly selections: readonly GraphqlSelection[];
}

export type GraphqlSelection =
  | GraphqlField
  | { readonly fragment: string; readonly isPlain: boolean }
  | { readonly inline: readonly GraphqlSelection[]; readonly isPlain: boolean };

export interface GraphqlOperation {
  readonly kind: "query" | "mutation";
  readonly name: string | undefined;
  /** Variables with their default. */
  readonly variables: ReadonlyMap<string, GraphqlValue | undefined>;
  readonly hasDirectives: boolean;
  readonly selections: readonly GraphqlSelection[];
}

export interface GraphqlDocument {
  readonly operations: readonly GraphqlOperation[];
  readonly fragments: ReadonlyMap<string, readonly GraphqlSelection[]>;
}

const MAX_DEPTH = 64;

/** Throws a GraphqlError for anything that it does not read for certain. */
export function parseGraphql(text: string): GraphqlDocument {
  return new GraphqlReader(graphqlTokens(text)).document();
}

class GraphqlReader {
  private at = 0;
  private depth = 0;
  private readonly tokens: readonly GraphqlToken[];

  constructor(tokens: readonly GraphqlToken[]) {
    this.tokens = tokens;
  }

  document(): GraphqlDocument {
    const operations: GraphqlOperation[] = [];
    const fragments = new Map<string, readonly GraphqlSelection[]>();
    while (this.at < this.tokens.length) {
      if (!this.isName("fragment")) {
        operations.push(this.operation());
        continue;
      }
      this.at++;
      const name = this.name();
      if (fragments.has(name)) throw new GraphqlError("names a fragment twice");
      if (this.name() !== "on") throw new GraphqlError("holds a fragment without a type");
      this.name();
      this.directives();
      fragments.set(name, this.selections());
    }
    return { operations, fragments };
  }

  private operation(): GraphqlOperation {
    const none = { name: undefined, variables: new Map(), hasDirectives: false };
    if (this.isMark("{")) return { kind: "query", ...none, selections: this.selections() };
    const kind = this.name();
    if (kind !== "query" && kind !== "mutation")
      throw new GraphqlError("must be a query or a mutation; subscriptions are not read");
    const name = this.tokens[this.at]?.kind === "name" ? this.name() : undefined;
    const variables = this.isMark("(") ? this.variables() : new Map<string, GraphqlValue | undefined>();
    return { kind, name, variables, hasDirectives: this.directives(), selections: this.selections() };
  }

  private variables(): Map<string, GraphqlValue | undefined> {
    return this.named("(", ")", () => {
      this.mark("$");
      const name = this.name();
      this.mark(":");
      this.type();
      const value = this.take("=") ? this.value() : undefined;
      this.directives();
      return [name, value];
    });
  }

  private type(): void {
    this.nested(() => {
      if (this.take("[")) {
        this.type();
        this.mark("]");
      } else this.name();
      this.take("!");
    });
  }

  /** Returns whether there is any. */
  private directives(): boolean {
    const start = this.at;
    while (this.take("@")) {
      this.name();
      if (this.isMark("(")) this.args();
    }
    return this.at > start;
  }

  private args(): Map<string, GraphqlValue> {
    return this.named("(", ")", () => this.member());
  }

  private member(): [string, GraphqlValue] {
    const name = this.name();
    this.mark(":");
    return [name, this.value()];
  }

  private selections(): GraphqlSelection[] {
    return this.nested(() => this.many("{", "}", () => this.selection()));
  }

  private selection(): GraphqlSelection {
    if (this.take("...")) {
      const isNamed = this.tokens[this.at]?.kind === "name" && !this.isName("on");
      if (isNamed) return { fragment: this.name(), isPlain: !this.directives() };
      if (this.isName("on")) this.at += 2;
      const isPlain = !this.directives();
      return { inline: this.selections(), isPlain };
    }
    const first = this.name();
    const alias = this.take(":") ? first : undefined;
    const name = alias === undefined ? first : this.name();
    const args = this.isMark("(") ? this.args() : new Map<string, GraphqlValue>();
    const isPlain = !this.directives() && alias === undefined;
    return { name, isPlain, args, selections: this.isMark("{") ? this.selections() : [] };
  }

  private value(): GraphqlValue {
    return this.nested(() => {
      if (this.take("$")) return { variable: this.name() };
      if (this.isMark("[")) return { list: this.listed() };
      if (this.isMark("{")) return { members: this.named("{", "}", () => this.member()) };
      const token = this.tokens[this.at++];
      if (token === undefined || token.kind === "mark")
        throw new GraphqlError("holds no value where one must be");
      return { literal: literalOf(token) };
    });
  }

  private listed(): GraphqlValue[] {
    const items: GraphqlValue[] = [];
    this.mark("[");
    while (!this.take("]")) items.push(this.value());
    return items;
  }

  /** Pairs between two marks, each name once. */
  private named<Value>(open: string, close: string, read: () => [string, Value]): Map<string, Value> {
    const found = new Map<string, Value>();
    this.mark(open);
    while (!this.take(close)) {
      const [name, value] = read();
      if (found.has(name)) throw new GraphqlError("repeats a name");
      found.set(name, value);
    }
    return found;
  }

  /** One item or more between two marks. */
  private many<Item>(open: string, close: string, read: () => Item): Item[] {
    this.mark(open);
    const items = [read()];
    while (!this.take(close)) items.push(read());
    return items;
  }

  private nested<Result>(read: () => Result): Result {
    if (++this.depth > MAX_DEPTH) throw new GraphqlError("is nested too deeply");
    const result = read();
    this.depth--;
    return result;
  }

  private name(): string {
    const token = this.tokens[this.at++];
    if (token?.kind !== "name") throw new GraphqlError("holds no name where one must be");
    return token.text;
  }

  private mark(text: string): void {
    if (!this.take(text)) throw new GraphqlError(`holds no ${text} where one must be`);
  }

  private take(text: string): boolean {
    const isThere = this.isMark(text);
    if (isThere) this.at++;
    return isThere;
  }

  private isMark(text: string): boolean {
    const token = this.tokens[this.at];
    return token?.kind === "mark" && token.text === text;
  }

  private isName(text: string): boolean {
    const token = this.tokens[this.at];
    return token?.kind === "name" && token.text === text;
  }
}

const WORDS: Readonly<Record<string, JsonValue>> = { true: true, false: false, null: null };

/** A name that is none of these is the name of an enumeration's value. */
function literalOf({ kind, text }: GraphqlToken): JsonValue {
  if (kind === "string") return text;
  if (kind === "name") return Object.hasOwn(WORDS, text) ? WORDS[text]! : text;
  const number = Number(text);
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER) throw new GraphqlError("holds a number that is too large");
  return number;
}
