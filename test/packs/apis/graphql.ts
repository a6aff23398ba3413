/** Reads the fields of the query and mutation types of a GraphQL schema as operations. */
import { type GraphqlToken, graphqlTokens } from "../../../src/rules/http/graphql/tokens.ts";
import type { DescribedOperation } from "./operation.ts";

interface SchemaField {
  readonly type: string;
  readonly required: boolean;
  readonly args: ReadonlyMap<string, SchemaField>;
}

type SchemaTypes = ReadonlyMap<string, ReadonlyMap<string, SchemaField>>;

export function graphqlOperations(text: string, host: string): DescribedOperation[] {
  const types = new SchemaReader(graphqlTokens(text.replace(/"""[\s\S]*?"""/g, " "))).types();
  return (["query", "mutation"] as const).flatMap((method) => {
    const fields = types.get(method === "query" ? "Query" : "Mutation") ?? new Map<string, SchemaField>();
    return [...fields].map(([path, field]) => ({
      method,
      host,
      path,
      fields: new Map([...field.args].flatMap(([name, arg]) => argumentFields(name, arg, types))),
      holds: ([data, own, ...rest]) => data === "data" && own === path && holdsPath(field.type, rest, types),
    }));
  });
}

/** An argument, and the members of its input object as `input.title`. */
function argumentFields(name: string, { type, required }: SchemaField, types: SchemaTypes) {
  const members = [...(types.get(type) ?? [])].map(([member]): [string, { required: boolean }] => [
    `${name}.${member}`,
    { required: false },
  ]);
  return [[name, { required }] as [string, { required: boolean }], ...members];
}

function holdsPath(type: string, [name, ...rest]: readonly string[], types: SchemaTypes): boolean {
  if (name === undefined) return true;
  const field = types.get(type)?.get(name);
  return field !== undefined && holdsPath(field.type, rest, types);
}

const WITH_FIELDS = new Set(["type", "input", "interface"]);

class SchemaReader {
  private at = 0;
  private readonly tokens: readonly GraphqlToken[];

  constructor(tokens: readonly GraphqlToken[]) {
    this.tokens = tokens;
  }

  types(): SchemaTypes {
    const types = new Map<string, ReadonlyMap<string, SchemaField>>();
    while (this.at < this.tokens.length) {
      if (!WITH_FIELDS.has(this.next())) continue;
      const name = this.next();
      while (this.tokens[this.at]?.text !== "{") this.at++;
      types.set(name, this.fields("{", "}"));
    }
    return types;
  }

  private fields(open: string, close: string): Map<string, SchemaField> {
    const fields = new Map<string, SchemaField>();
    if (this.next() !== open) throw new Error(`no ${open} where the schema must have one`);
    while (!this.take(close)) {
      const name = this.next();
      const args =
        this.tokens[this.at]?.text === "(" ? this.fields("(", ")") : new Map<string, SchemaField>();
      if (this.next() !== ":") throw new Error(`the schema's field ${name} has no type`);
      fields.set(name, { ...this.type(), args });
    }
    return fields;
  }

  /** The named type without lists, and whether a value must be given. */
  private type(): { type: string; required: boolean } {
    while (this.take("["));
    const type = this.next();
    let required = false;
    while (this.isOneOf("]", "!")) required = this.next() === "!";
    if (this.take("=")) {
      required = false;
      this.skipValue();
    }
    while (this.take("@")) {
      this.at++;
      if (this.isOneOf("(")) this.skipValue();
    }
    return { type, required };
  }

  private skipValue(): void {
    let depth = 0;
    do {
      const text = this.next();
      if (["[", "{", "("].includes(text)) depth++;
      if (["]", "}", ")"].includes(text)) depth--;
    } while (depth > 0);
  }

  private isOneOf(...texts: string[]): boolean {
    const token = this.tokens[this.at];
    return token?.kind === "mark" && texts.includes(token.text);
  }

  private take(text: string): boolean {
    const isThere = this.isOneOf(text);
    if (isThere) this.at++;
    return isThere;
  }

  private next(): string {
    const token = this.tokens[this.at++];
    if (token === undefined) throw new Error("the schema ends too early");
    return token.text;
  }
}
