/**
 * State that a client of the newer revision carries between the two requests of a call that waits for approval. Any
 * client could send it, so it is authenticated and bound to principal, run, call and expiry time. It is valid once
 * across all gateways of the store.
 */

import { isExpired } from "../../govern/expiry.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { hmacHex, sameSecret } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import {
  fromJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from "../../kernel/json/json.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { consumeToken } from "../../operations/sessions.ts";
import { invalidParams } from "./mcp-server.ts";

/** A call that waits for approval. */
export interface WaitingCall {
  principal: CallerPrincipal;
  tool: string;
  args: JsonObject;
}

export interface WaitState {
  run_id: string;
  approval_id: string;
}

const PREFIX = "svc1.";
/** Lifetime of a state. The record of a used state is stored for the same time. */
const GOOD_MS = 24 * 3_600_000;

/** Whether this gateway issued the state. The state of an upstream passes unchanged. */
export function isOurState(state: JsonValue | undefined): state is string {
  return typeof state === "string" && state.startsWith(PREFIX);
}

export function mintState(
  { core }: ServiceApp,
  call: WaitingCall,
  { run_id, approval_id }: WaitState,
): string {
  const body = { run_id, approval_id, until_ms: core.env.now() + GOOD_MS, once: core.env.uuid() };
  const text = Buffer.from(toCanonicalJson(body)).toString("base64url");
  return `${PREFIX}${text}.${sign(core.storeKey, text, call)}`;
}

/** Reads and consumes a state. Throws unless it is authentic, belongs to this call, is unexpired and is unused. */
export async function consumeState(
  { core }: ServiceApp,
  call: WaitingCall,
  state: string,
): Promise<WaitState> {
  const [text = "", mac = "", ...more] = state.slice(PREFIX.length).split(".");
  if (more.length > 0 || !sameSecret(mac, sign(core.storeKey, text, call)))
    throw refused("it does not belong to this call");
  const body = parseJson(Buffer.from(text, "base64url").toString("utf8"));
  if (!isJsonObject(body)) throw refused("it does not belong to this call");
  const { run_id, approval_id, until_ms, once } = fromJson<
    WaitState & {
      until_ms: number;
      once: string;
    }
  >(body);
  const now = core.env.now();
  if (isExpired({ expires_ms: until_ms }, now)) throw refused("it has expired");
  const key = `request-state/${once}`;
  if (!(await consumeToken(core, key, run_id, now))) throw refused("it was used before");
  return { run_id, approval_id };
}

function sign(key: string, text: string, { principal, tool, args }: WaitingCall): string {
  return hmacHex(key, toCanonicalJson(["request-state", text, principal.id, tool, args]));
}

function refused(why: string): Error {
  return invalidParams(`requestState: ${why}; send the call again without it`);
}
