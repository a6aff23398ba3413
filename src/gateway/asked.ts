/** A call as an agent asked for it, and small questions about it that need no session. */
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { OWN_PREFIXES, type Route } from "./catalog.ts";
import { invalidParams } from "./peer.ts";
import type { RequestContext } from "./request-context.ts";

/** A call as it was asked for: the tool as manifests name it, its arguments, and why. */
export interface GatewayCall {
  tool: string;
  route: Route | undefined;
  args: JsonObject;
  reason: string | undefined;
}

export function isOwnTool(tool: string): boolean {
  return OWN_PREFIXES.some((prefix) => tool.startsWith(prefix));
}

/** Undefined where the client did not ask to hear of progress. */
export function progressOf({ meta, notify }: RequestContext): ((told: JsonObject) => void) | undefined {
  const token = meta["progressToken"];
  if (token === undefined) return undefined;
  return (told) => notify("notifications/progress", { ...told, progressToken: token });
}

/** The request that a blocked call waits for. */
export function approvalOf({ _meta }: JsonObject): string | null {
  if (!isJsonObject(_meta) || _meta["svc/decision"] !== "block") return null;
  const id = _meta["svc/approval_id"];
  return typeof id === "string" ? id : null;
}

/** The request's extra with the authority of this moment; throws where the credential no longer counts. */
export function stillAsking({ extra }: RequestContext): RequestContext["extra"] {
  return extra === undefined ? undefined : { ...extra, principal: extra.again() };
}

export function unknownTool(name: string): Error {
  return invalidParams(`unknown tool ${JSON.stringify(name.slice(0, 80))}`);
}
