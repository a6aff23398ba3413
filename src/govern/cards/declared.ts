/**
 * Arguments that are declared by the manifest or by the tool's server, not by the agent. A manifest declares an argument by naming it in its card, undo,
 * reads, idempotency, redaction or drill. The gateway also has the input schema that the upstream gave for the tool.
 */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { tryTemplatePath } from "../../kernel/paths.ts";
import { titlePieces } from "../../rules/manifest/card-template.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { CARD_LIMITS } from "./text/limits.ts";
import { argumentPath } from "./text/names.ts";

/** Top-level argument names that the manifest declares. */
export function declaredNames(manifest: ToolManifest | null): Set<string> {
  const names = new Set<string>(Object.keys(manifest?.drill?.args ?? {}));
  if (manifest === null) return names;
  const { card, compensation, before, verification, idempotency, audit } = manifest;
  const walk = (value: unknown): void => {
    if (typeof value === "string") {
      const path = tryTemplatePath(value);
      if (path?.root === "args" && path.keys.length > 0) names.add(String(path.keys[0]));
    } else if (value !== null && typeof value === "object") for (const one of Object.values(value)) walk(one);
  };
  walk([compensation, before, verification, idempotency, audit.redaction, card?.fields, card?.reveal]);
  // The undo fills this argument from the `before` read, so the call has the argument too.
  for (const [name, put] of Object.entries(compensation?.args ?? {}))
    if (typeof put === "string" && tryTemplatePath(put)?.root === "before") names.add(name);
  for (const piece of titlePieces(card?.title ?? "")) if ("path" in piece) walk(piece.path?.source);
  return names;
}

/** True if the manifest's card names an argument. Only then does the card remark on undeclared ones. */
export function listsInputs(manifest: ToolManifest | null): boolean {
  const { fields = [], title = null } = manifest?.card ?? {};
  const placed = titlePieces(title ?? "").map(
    (piece) => ("path" in piece ? piece.path?.keys.length : 0) ?? 0,
  );
  return (
    placed.some((n) => n > 0) || fields.some(({ path }) => (tryTemplatePath(path)?.keys.length ?? 0) > 0)
  );
}

/** Paths of the members that the input schema does not declare. Members below such a path are not listed separately. */
export function undeclaredPaths(args: JsonValue, schema: JsonValue): string[] {
  const found: string[] = [];
  const walk = (
    value: JsonValue,
    shapes: readonly JsonObject[],
    keys: readonly (string | number)[],
  ): void => {
    if (value === null || typeof value !== "object" || found.length >= CARD_LIMITS.kept_members) return;
    if (Array.isArray(value)) {
      const items = shapes.flatMap((shape) => expandedShapes(shape["items"], schema));
      if (items.length > 0) for (const [i, item] of value.entries()) walk(item, items, [...keys, i]);
      return;
    }
    const objects = shapes.filter(({ properties }) => isJsonObject(properties));
    if (objects.length === 0) return;
    for (const name of Object.keys(value)) {
      const inner = objects.flatMap((shape) => memberShapes(shape, name, schema));
      if (inner.length > 0) walk(value[name]!, inner, [...keys, name]);
      else if (found.length < CARD_LIMITS.kept_members) found.push(argumentPath([...keys, name]));
    }
  };
  walk(args, expandedShapes(schema, schema), []);
  return found;
}

function memberShapes(shape: JsonObject, name: string, schema: JsonValue): JsonObject[] {
  const properties = shape["properties"] as JsonObject;
  if (Object.hasOwn(properties, name)) return orAny(expandedShapes(properties[name], schema));
  const others = shape["additionalProperties"];
  const open = shape["patternProperties"] !== undefined || others === true || isJsonObject(others);
  return open ? [{}] : [];
}

const orAny = (shapes: JsonObject[]): JsonObject[] => (shapes.length === 0 ? [{}] : shapes);

const REF_DEPTH = 8;
const BRANCHES = ["allOf", "anyOf", "oneOf"] as const;

/** The schema with the branches and local references it can resolve to. */
function expandedShapes(shape: JsonValue | undefined, schema: JsonValue, depth = REF_DEPTH): JsonObject[] {
  if (shape === undefined || !isJsonObject(shape) || depth === 0) return [];
  const parts = BRANCHES.flatMap((name) => (Array.isArray(shape[name]) ? (shape[name] as JsonValue[]) : []));
  const { $ref } = shape;
  if (typeof $ref === "string") parts.push(referenced($ref, schema));
  return [shape, ...parts.flatMap((part) => expandedShapes(part, schema, depth - 1))];
}

function referenced(ref: string, schema: JsonValue): JsonValue {
  const keys = ref.startsWith("#/") ? ref.slice(2).split("/") : [];
  let here: JsonValue = keys.length === 0 ? null : schema;
  for (const key of keys) here = isJsonObject(here) && Object.hasOwn(here, key) ? here[key]! : null;
  return here;
}
