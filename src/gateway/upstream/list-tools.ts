/** Lists an upstream's tools over a connection, page by page and within limits. */
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import type { UpstreamConnection } from "./connection.ts";

const LEAST_MS = 5_000;
const MAX_PAGES = 100;
const MAX_TOOLS = 10_000;

export async function listTools(link: UpstreamConnection, timeout_ms: number): Promise<JsonObject[]> {
  if (link.capabilities.tools === undefined) return [];
  const tools: JsonObject[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params: JsonObject = cursor === undefined ? {} : { cursor };
    const answer = await link.request("tools/list", params, { timeout_ms: Math.max(timeout_ms, LEAST_MS) });
    const listed = answer["tools"];
    if (!Array.isArray(listed)) throw new Error("its tools/list answer has no list of tools");
    tools.push(...listed.filter(isJsonObject));
    if (tools.length > MAX_TOOLS) throw new Error(`it lists more than ${MAX_TOOLS} tools`);
    const next = answer["nextCursor"];
    if (typeof next !== "string" || next === cursor) return tools;
    cursor = next;
  }
  throw new Error(`its tools/list does not end within ${MAX_PAGES} pages`);
}

export function sameTools(a: readonly JsonObject[], b: readonly JsonObject[]): boolean {
  return a.length === b.length && JSON.stringify(a) === JSON.stringify(b);
}
