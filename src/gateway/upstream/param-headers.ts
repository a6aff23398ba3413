/**
 * Headers that a server of the newer protocol version requires with a call (`x-mcp-header` in a tool's input schema).
 * They repeat named arguments as `Mcp-Param-<name>` for proxies that route requests.
 */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";

interface Declaration {
  path: readonly string[];
  name: string;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const MAX_DEPTH = 16;

export function paramDeclarations(definition: JsonObject): readonly Declaration[] {
  const found: Declaration[] = [];
  const visit = (schema: JsonValue | undefined, path: readonly string[]): void => {
    if (!isJsonObject(schema) || path.length > MAX_DEPTH) return;
    const name = schema["x-mcp-header"];
    if (path.length > 0 && typeof name === "string" && TOKEN.test(name)) found.push({ path, name });
    const { properties } = schema;
    if (!isJsonObject(properties)) return;
    for (const key of Object.keys(properties)) visit(properties[key], [...path, key]);
  };
  visit(definition["inputSchema"], []);
  return found;
}

export function paramHeaders(declarations: readonly Declaration[], args: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { path, name } of declarations) {
    let value: JsonValue | undefined = args;
    for (const key of path) {
      value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    }
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") continue;
    headers[`Mcp-Param-${name}`] = fieldValue(String(value));
  }
  return headers;
}

/** The text as a header value. Text that HTTP does not allow is sent as marked base64. */
function fieldValue(text: string): string {
  const plain = PLAIN.test(text) && !(text.startsWith("=?base64?") && text.endsWith("?="));
  return plain ? text : `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}
