/** One operation of a published API description, in the same form for all kinds of descriptions. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/kernel/json/json.ts";

export interface DescribedOperation {
  readonly method: string;
  readonly host: string;
  /** Path with the description's own names for its places. */
  readonly path: string;
  /** Query and body fields. */
  readonly fields: ReadonlyMap<string, { readonly required: boolean }>;
  /** Whether a successful answer can hold this path. */
  holds(path: readonly string[]): boolean;
}

/** Whether a manifest's path is one of the described path. A described place also takes a literal segment. */
export function fitsDescribedPath(path: string, described: string): boolean {
  const segments = path.split("/");
  const wanted = described.split("/");
  // A git reference such as heads/main is one place.
  if (wanted.at(-1) === "{ref}" && segments.at(-2) === "heads") segments.splice(-2, 2, "{ref}");
  return (
    segments.length === wanted.length &&
    segments.every((segment, i) => plainSegment(wanted[i]!) === plainSegment(segment) || isPlace(wanted[i]!))
  );
}

const plainSegment = (segment: string): string => segment.replace(/\{[^}]*\}/g, "{}");
const isPlace = (segment: string): boolean => /^\{[^}]*\}$/.test(segment);

/** Finds what a `$ref` names. */
export type ReferenceReader = (reference: string) => JsonValue | undefined;

const CHOICES = ["allOf", "anyOf", "oneOf"] as const;

/** Whether a value of the schema can hold this path. A number is a place in a list. */
export function schemaHolds(
  schema: JsonValue | undefined,
  path: readonly string[],
  read: ReferenceReader,
): boolean {
  const [name, ...rest] = path;
  if (name === undefined) return true;
  if (!isJsonObject(schema)) return false;
  const { $ref } = schema;
  if (typeof $ref === "string") return schemaHolds(read($ref), path, read);
  const { items, properties } = schema;
  if (/^\d+$/.test(name) && schemaHolds(items, rest, read)) return true;
  // Slack lists the kinds of a value as the items of a list.
  if (Array.isArray(items) && items.some((item) => schemaHolds(item, path, read))) return true;
  if (isJsonObject(properties) && schemaHolds(properties[name], rest, read)) return true;
  return choicesOf(schema).some((choice) => schemaHolds(choice, path, read));
}

/** Names of an object schema's members, and whether each is required. */
export function schemaFields(
  schema: JsonValue | undefined,
  read: ReferenceReader,
): Map<string, { required: boolean }> {
  const fields = new Map<string, { required: boolean }>();
  if (!isJsonObject(schema)) return fields;
  const { $ref, properties, required } = schema;
  if (typeof $ref === "string") return schemaFields(read($ref), read);
  const needed = Array.isArray(required) ? required : [];
  for (const name of Object.keys(isJsonObject(properties) ? properties : {}))
    fields.set(name, { required: needed.includes(name) });
  const isAll = schema["allOf"] !== undefined;
  for (const choice of choicesOf(schema))
    for (const [name, field] of schemaFields(choice, read))
      if (!fields.has(name)) fields.set(name, { required: isAll && field.required });
  return fields;
}

function choicesOf(schema: JsonObject): JsonValue[] {
  return CHOICES.flatMap((name) => {
    const choices = schema[name];
    return Array.isArray(choices) ? choices : [];
  });
}
