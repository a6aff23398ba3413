/** An agent's call as the gateway received it, with helpers that need no session. */
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { OWN_PREFIXES, type ToolRoute } from "../catalog/catalog.ts";
import { invalidParams } from "../session/mcp-server.ts";
import type { RequestContext } from "../session/request-context.ts";

/** A requested call. `tool` is the name that manifests use. */
export interface GatewayCall {
  tool: string;
  route: ToolRoute | undefined;
  args: JsonObject;
  reason: string | undefined;
}

export function isOwnTool(tool: string): boolean {
  return OWN_PREFIXES.some((prefix) => tool.startsWith(prefix));
}

/** Sends progress notifications. Undefined if the client did not request them. */
export function progressOf({ meta, notify }: RequestContext): ((told: JsonObject) => void) | undefined {
  const token = meta["progressToken"];
  if (token === undefined) return undefined;
  return (told) => notify("notifications/progress", { ...told, progressToken: token });
}

/** The approval request that a blocked call waits for, or null. */
export function approvalOf({ _meta }: JsonObject): string | null {
  if (!isJsonObject(_meta) || _meta["svc/decision"] !== "block") return null;
  const id = _meta["svc/approval_id"];
  return typeof id === "string" ? id : null;
}

/** The request's extra with the caller's current authority. Throws for an invalid credential. */
export function recheckAuthority({ extra }: RequestContext): RequestContext["extra"] {
  return extra === undefined ? undefined : { ...extra, principal: extra.again() };
}

export function unknownTool(name: string): Error {
  return invalidParams(`unknown tool ${JSON.stringify(name.slice(0, 80))}`);
}
