/** Reference pages of files with a JSON Schema, and the parts of a schema as text. */
import { codeSpan, generatedNote, markdownTable } from "./markdown.ts";

export interface JsonSchema {
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  /** Default that is not a value of the key, such as `never`. */
  "x-default"?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  additionalProperties?: JsonSchema | boolean;
  $ref?: string;
}

export const alternativesOf = (schema: JsonSchema): JsonSchema[] => schema.anyOf ?? schema.oneOf ?? [schema];

/** Longest enumeration with a code span for each value. */
const MAX_SPANS = 4;

const enumWords = (values: readonly unknown[]): string[] =>
  values.length > MAX_SPANS ? [codeSpan(values.join(", "))] : values.map(codeSpan);

/** The accepted values, in words. */
export function valueWords(schema: JsonSchema): string {
  const kinds = alternativesOf(schema).flatMap((one): string[] => {
    if (one.enum !== undefined) return enumWords(one.enum.filter((value) => value !== null));
    if (one.const !== undefined) return one.const === null ? [] : [codeSpan(one.const)];
    if (one.items !== undefined) return [`list of ${valueWords(one.items)}`];
    if (one.anyOf !== undefined) return [valueWords(one)];
    if (one.$ref !== undefined) return [one.$ref.split("/").at(-1)!];
    const types = [one.type ?? []].flat().filter((type) => type !== "null");
    return types.length === 0 && one.oneOf === undefined ? ["any value"] : types;
  });
  const named = [...new Set(kinds)].filter((kind) => kind !== "any value" || kinds.length === 1);
  return named.length === 0 ? "–" : named.join(", ");
}

export function defaultWords(schema: JsonSchema): string {
  if (schema["x-default"] !== undefined) return schema["x-default"];
  if (schema.default === undefined || schema.default === null) return "";
  return Array.isArray(schema.default) && schema.default.length === 0 ? "none" : codeSpan(schema.default);
}

const REQUIRED = " (required)";

/** Each key below a schema with its full name, outer keys first. */
export function* keyRows(schema: JsonSchema, path = ""): Generator<string[]> {
  for (const one of alternativesOf(schema)) {
    for (const [name, field] of Object.entries(one.properties ?? {})) {
      const key = path === "" ? name : `${path}.${name}`;
      const must = one.required?.includes(name) ? REQUIRED : "";
      yield [codeSpan(key), `${valueWords(field)}${must}`, defaultWords(field), field.description ?? ""];
      yield* keyRows(field, key);
    }
    if (one.items !== undefined) yield* keyRows(one.items, `${path}[]`);
  }
}

const HEADS = ["Key", "Value", "Default", "Meaning"];

/** A row whose default is never empty: a required key has none. */
function withDefault([key = "", value = "", given = "", meaning = ""]: string[]): string[] {
  const words = value.replace(REQUIRED, "");
  return [key, words, words === value ? given || "none" : "required", meaning];
}

/** Rows without repetitions, as alternatives of a schema can share keys. */
export const distinctRows = (rows: Iterable<string[]>): string[][] => [
  ...new Map([...rows].map((row) => [row.join("|"), row])).values(),
];

export function schemaPage(options: {
  title: string;
  about: string;
  from: string;
  schema: JsonSchema;
  example: string;
  /** True for one table per outer key. */
  sections?: boolean;
}): string {
  const { title, about, from, schema, example, sections = false } = options;
  const rows = distinctRows(keyRows(schema.items ?? schema)).map(withDefault);
  return `# ${title}

${generatedNote(from)}

${about}

\`\`\`yaml
${example.trimEnd()}
\`\`\`

${sections ? sectionTables(rows) : markdownTable(HEADS, rows)}`;
}

/** A table of the outer keys, then one table for the keys below each of them. */
function sectionTables(rows: readonly string[][]): string {
  const keyOf = ([key]: string[]) => key!.replaceAll("`", "").split(/[.[]/)[0]!;
  const outer = rows.filter(([key]) => !/[.[]/.test(key!));
  const parts = [...new Set(rows.map(keyOf))].flatMap((name) => {
    const inner = rows.filter((row) => keyOf(row) === name && !outer.includes(row));
    return inner.length === 0 ? [] : [`\n## ${name}\n\n${markdownTable(HEADS, inner)}`];
  });
  return `## Sections\n\n${markdownTable(HEADS, outer)}${parts.join("")}`;
}
