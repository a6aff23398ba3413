/** Generates the JSON Schemas for editors from the validating schemas. */
import * as z from "zod";
import { manifestFileSchema } from "../rules/manifest/schema.ts";
import { describePolicyField } from "../rules/policy/descriptions.ts";
import { policySchema } from "../rules/policy/schema.ts";
import { describeSettingField } from "./field-texts.ts";
import { isSection, type SettingRow, type SettingSection } from "./setting-row.ts";
import { SETTING_ENTRIES } from "./settings.ts";

type JsonSchema = Record<string, unknown>;

const VARIABLE = { type: "string", pattern: "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" };

interface SchemaOptions {
  /** Schema of notification channels, which a higher layer defines. */
  readonly channels?: z.ZodType;
}

/** Returns file contents by name, as in `schemas/`. */
export function generateSchemas(options: SchemaOptions = {}): Record<string, string> {
  const manifest = { title: "svc tool manifests", ...toJsonSchema(manifestFileSchema) };
  return {
    "manifest.schema.json": print(manifest),
    "policy.schema.json": print({
      title: "svc policy",
      ...described(toJsonSchema(policySchema), describePolicyField),
    }),
    "config.schema.json": print(configSchema(options)),
  };
}

function configSchema(options: SchemaOptions): JsonSchema {
  const properties: JsonSchema = {};
  for (const [name, entry] of SETTING_ENTRIES) {
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
  { about, rows, shorthand }: SettingSection,
  options: SchemaOptions,
): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(rows).map(([key, row]) => [key, rowSchema(`${name}.${key}`, row, options)]),
  );
  const whole = { type: ["object", "null"], properties, additionalProperties: false };
  if (shorthand === undefined) return { description: about, ...whole };
  return { description: about, anyOf: [whole, properties[shorthand]] };
}

/** Values other than plain text may also be a `${NAME}`, and any key may be left empty. */
function rowSchema(key: string, row: SettingRow, options: SchemaOptions): JsonSchema {
  const given = key === "notifications.channels" && options.channels ? options.channels : row.schema;
  const { $schema, ...schema } = toJsonSchema(given);
  const plain =
    schema["type"] === "string" && !("enum" in schema || "pattern" in schema || "format" in schema);
  const forms = plain ? [schema] : [schema, VARIABLE];
  const named = forms.map((form) => described(form, describeSettingField, key));
  return { description: row.about, anyOf: [...named, { type: "null" }] };
}

function toJsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
}

type DescribeField = (path: string) => string | undefined;

/** The schema with a description for each field, so that editors show it. */
function described(schema: JsonSchema, describe: DescribeField, path = ""): JsonSchema {
  const { properties, items } = schema as { properties?: Record<string, JsonSchema>; items?: JsonSchema };
  const result = { ...schema };
  if (properties !== undefined) {
    const named = Object.entries(properties).map(([name, field]) => {
      const key = path === "" ? name : `${path}.${name}`;
      const description = describe(key);
      const text = description === undefined ? {} : { description };
      return [name, { ...text, ...described(field, describe, key) }] as const;
    });
    result["properties"] = Object.fromEntries(named);
  }
  if (items !== undefined) result["items"] = described(items, describe, `${path}[]`);
  for (const choice of ["anyOf", "oneOf"] as const) {
    const forms = schema[choice] as JsonSchema[] | undefined;
    if (forms !== undefined) result[choice] = forms.map((form) => described(form, describe, path));
  }
  return result;
}

function print(schema: JsonSchema): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}
