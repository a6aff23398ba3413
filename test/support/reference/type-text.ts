/** A JSON Schema as a TypeScript type, with the meaning of each field as a comment. */
import { alternativesOf, type JsonSchema } from "./schema.ts";

/** Longest line that keeps an object without comments on one line. */
const MAX_LINE = 60;

export function typeText(schema: JsonSchema, indent = ""): string {
  const kinds = alternativesOf(schema).map((one) => singleType(one, indent));
  return [...new Set(kinds)].join(" | ");
}

function singleType(schema: JsonSchema, indent: string): string {
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1)!;
  if (schema.anyOf !== undefined || schema.oneOf !== undefined) return typeText(schema, indent);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.items !== undefined) return listType(schema.items, indent);
  if (schema.properties !== undefined) return objectType(schema, indent);
  if (typeof schema.additionalProperties === "object")
    return `{ [name: string]: ${typeText(schema.additionalProperties, indent)} }`;
  const types = [schema.type ?? []].flat().map((type) => (type === "integer" ? "number" : type));
  return types.length === 0 ? "unknown" : types.join(" | ");
}

function listType(items: JsonSchema, indent: string): string {
  const item = typeText(items, indent);
  return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
}

function objectType({ properties = {}, required = [] }: JsonSchema, indent: string): string {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, field]) => ({
    text: `${name}${required.includes(name) ? "" : "?"}: ${typeText(field, inner)}`,
    comment: field.description,
  }));
  const line = `{ ${fields.map(({ text }) => text).join("; ")} }`;
  if (line.length <= MAX_LINE && fields.every(({ comment }) => comment === undefined)) return line;
  const lines = fields.map(({ text, comment }) => {
    if (comment === undefined) return `${inner}${text};`;
    return text.includes("\n") ? `${inner}// ${comment}\n${inner}${text};` : `${inner}${text}; // ${comment}`;
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}
