/** Makes up harmless arguments for a tool from its input schema. Values of earlier results replace made-up ids. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";

/** Values by the name of their member, such as an `id` that another tool returned. */
export type KnownValues = ReadonlyMap<string, JsonValue>;

/** Maximum depth of a made-up value. */
const MAX_DEPTH = 5;
const SMALL = 7;

/** Arguments for all required members and, if possible, for those in `also`; or the member that has no value. */
export function exampleArgs(
  definition: JsonObject,
  { known, word, also = [] }: { known: KnownValues; word: string; also?: readonly string[] },
): { args: JsonObject } | { missing: string } {
  const schema = definition["inputSchema"];
  if (!isJsonObject(schema)) return { args: {} };
  const making = { known, word, depth: 0 };
  const made = exampleObject(schema, making);
  if ("missing" in made) return made;
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  for (const name of also) {
    if (Object.hasOwn(made.value, name) || !Object.hasOwn(properties, name)) continue;
    const value = exampleValue(properties[name]!, { ...making, depth: 1 });
    if (value !== undefined) made.value[name] = value;
  }
  return { args: made.value };
}

interface Making {
  known: KnownValues;
  word: string;
  depth: number;
}

function exampleObject(
  schema: JsonObject,
  { depth, ...making }: Making,
): { value: JsonObject } | { missing: string } {
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const value: JsonObject = {};
  for (const name of required) {
    if (typeof name !== "string") continue;
    const own = depth === 0 ? knownValue(making.known, name) : undefined;
    const made = own ?? exampleValue(properties[name] ?? {}, { ...making, depth: depth + 1 });
    if (made === undefined) return { missing: name };
    value[name] = made;
  }
  return { value };
}

/** An id that is named after its kind, such as `note_id`, is the `id` that the tool for that kind returned. */
const knownValue = (known: KnownValues, name: string): JsonValue | undefined =>
  known.get(name) ?? (/(?:_id|Id)$/.test(name) ? known.get("id") : undefined);

/** Undefined if no harmless value can be made up. */
function exampleValue(schema: JsonValue, making: Making): JsonValue | undefined {
  if (!isJsonObject(schema) || making.depth > MAX_DEPTH) return undefined;
  const [choice] = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const [example] = Array.isArray(schema["examples"]) ? schema["examples"] : [];
  const given = schema["const"] ?? schema["default"] ?? choice ?? example;
  if (given !== undefined) return given;
  const [option] = [schema["anyOf"], schema["oneOf"]].flatMap((list) => (Array.isArray(list) ? list : []));
  if (option !== undefined) return exampleValue(option, { ...making, depth: making.depth + 1 });
  const { type } = schema;
  switch (Array.isArray(type) ? type[0] : type) {
    case "integer":
    case "number":
      return exampleNumber(schema);
    case "boolean":
      return true;
    case "array": {
      const item = exampleValue(schema["items"] ?? {}, { ...making, depth: making.depth + 1 });
      return item === undefined ? [] : [item];
    }
    case "object": {
      const made = exampleObject(schema, making);
      return "missing" in made ? undefined : made.value;
    }
    default:
      return exampleText(schema, making.word);
  }
}

function exampleNumber(schema: JsonObject): number {
  const { minimum, maximum } = schema;
  const atLeast = typeof minimum === "number" ? Math.max(SMALL, Math.ceil(minimum)) : SMALL;
  return typeof maximum === "number" ? Math.min(atLeast, Math.floor(maximum)) : atLeast;
}

const FORMATS: Readonly<Record<string, (word: string) => string>> = {
  date: () => "2030-01-15",
  "date-time": () => "2030-01-15T10:00:00Z",
  time: () => "10:00:00Z",
  email: (word) => `${word}@example.com`,
  uri: (word) => `https://example.com/${word}`,
  uuid: () => "00000000-0000-4000-8000-000000000001",
};

/** A text with a pattern cannot be made up. */
function exampleText(schema: JsonObject, word: string): string | undefined {
  const { format, pattern, maxLength } = schema;
  if (typeof format === "string" && Object.hasOwn(FORMATS, format)) return FORMATS[format]!(word);
  if (typeof pattern === "string" && !new RegExp(pattern, "u").test(word)) return undefined;
  return typeof maxLength === "number" ? word.slice(0, maxLength) : word;
}

/** Adds the first value of each member's name, in objects and lists of any depth. */
export function learnValues(value: JsonValue, into: Map<string, JsonValue>): void {
  if (Array.isArray(value)) for (const item of value) learnValues(item, into);
  else if (isJsonObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      const isPlain = typeof member === "string" || typeof member === "number";
      if (isPlain && !into.has(name)) into.set(name, member);
      if (!isPlain) learnValues(member, into);
    }
  }
}
