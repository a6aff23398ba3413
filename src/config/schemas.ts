/** The JSON Schemas for editors, made from the schemas that validate. */
import * as z from "zod";
import { manifestFileSchema } from "../model/manifest/schema.ts";
import { policySchema } from "../model/policy/schema.ts";
import { isSection, type Section, type SettingRow } from "./row.ts";
import { ENTRIES } from "./settings.ts";

type JsonSchema = Record<string, unknown>;

const VARIABLE = { type: "string", pattern: "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" };

interface SchemaOptions {
  /** Schemas that live further up: the channels' own. */
  readonly channels?: z.ZodType;
}

/** File name to content, as they stand in `schemas/`. */
export function generateSchemas(options: SchemaOptions = {}): Record<string, string> {
  const manifest = { title: "svc tool manifests", ...toJsonSchema(manifestFileSchema) };
  return {
    "manifest.schema.json": print(manifest),
    "policy.schema.json": print({ title: "svc policy", ...toJsonSchema(policySchema) }),
    "config.schema.json": print(configSchema(options)),
  };
}

function configSchema(options: SchemaOptions): JsonSchema {
  const properties: JsonSchema = {};
  for (const [name, entry] of ENTRIES) {
    properties[name] = isSection(entry)
      ? sectionSchema(name, entry, options)
      : rowSchema(name, entry, options);
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "svc.config.yaml",
    type: ["object", "null"],
    properties,
    additionalProperties: false,
  };
}

function sectionSchema(
  name: string,
  { about, rows, shorthand }: Section,
  options: SchemaOptions,
): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(rows).map(([key, row]) => [key, rowSchema(`${name}.${key}`, row, options)]),
  );
  const whole = { type: ["object", "null"], properties, additionalProperties: false };
  if (shorthand === undefined) return { description: about, ...whole };
  return { description: about, anyOf: [whole, properties[shorthand]] };
}

/** What is not plain text may also come from a variable, and any key may be left empty. */
function rowSchema(key: string, row: SettingRow, options: SchemaOptions): JsonSchema {
  const given = key === "notifications.channels" && options.channels ? options.channels : row.schema;
  const { $schema, ...schema } = toJsonSchema(given);
  const plain =
    schema["type"] === "string" && !("enum" in schema || "pattern" in schema || "format" in schema);
  const forms = plain ? [schema] : [schema, VARIABLE];
  return { description: row.about, anyOf: [...forms, { type: "null" }] };
}

function toJsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
}

function print(schema: JsonSchema): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}
