/**
 * What a client of the newer revision carries between the two halves of a call that waits for approval. It comes
 * back as the input of whichever client sends it, so it is authenticated, and bound to who asked, in which run, for which call and until
 * when; and it is good once, over all gateways of the store.
 */
import type { App } from "../app/app.ts";
import { canonical } from "../kernel/canonical.ts";
import { hmacHex, sameSecret } from "../kernel/hash.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { invalidParams } from "./peer.ts";

/** The call that waits. */
export interface WaitingCall {
  principal: Principal;
  tool: string;
  args: JsonObject;
}

export interface State {
  run_id: string;
  approval_id: string;
}

const PREFIX = "svc1.";
/** As long as the mark of a used one is kept. */
const GOOD_MS = 24 * 3_600_000;

/** Whether it is ours to read; an upstream's own passes as it is. */
export function isOurState(state: Json | undefined): state is string {
  return typeof state === "string" && state.startsWith(PREFIX);
}

export function mintState({ core }: App, call: WaitingCall, { run_id, approval_id }: State): string {
  const body = { run_id, approval_id, until_ms: core.env.now() + GOOD_MS, once: core.env.uuid() };
  const text = Buffer.from(canonical(body)).toString("base64url");
  return `${PREFIX}${text}.${sign(core.storeKey, text, call)}`;
}

/** Reads a state and uses it up; throws where it is not one of ours, for this call, now, for the first time. */
export async function redeemState({ core }: App, call: WaitingCall, state: string): Promise<State> {
  const [text = "", mac = "", ...more] = state.slice(PREFIX.length).split(".");
  if (more.length > 0 || !sameSecret(mac, sign(core.storeKey, text, call)))
    throw refused("it is not one of this call");
  const body = parseJson(Buffer.from(text, "base64url").toString("utf8"));
  if (!isJsonObject(body)) throw refused("it is not one of this call");
  const { run_id, approval_id, until_ms, once } = body as unknown as State & {
    until_ms: number;
    once: string;
  };
  const now = core.env.now();
  if (until_ms <= now) throw refused("its time is over");
  const key = `request-state/${once}`;
  const first = await core.store.transact({
    needs: [["replies", key]],
    run(tx) {
      if (tx.get("replies", key) !== undefined) return false;
      tx.put("replies", key, { run_id, request_hash: "", body: null, at_ms: now });
      return true;
    },
  });
  if (!first) throw refused("it was used before");
  return { run_id, approval_id };
}

function sign(key: string, text: string, { principal, tool, args }: WaitingCall): string {
  return hmacHex(key, canonical(["request-state", text, principal.id, tool, args]));
}

function refused(why: string): Error {
  return invalidParams(`requestState: ${why}; send the call again without it`);
}
