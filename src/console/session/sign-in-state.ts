/**
 * State of a sign-in while the user is at the identity provider. The browser holds it, signed. The store learns of it
 * only after the provider has identified the user, so unknown visitors cannot fill the store. State, nonce and PKCE
 * verifier are derived from the signed id with a key that the browser does not have.
 */

import { hkdfSync } from "node:crypto";
import type { SignInRequest } from "../../auth/sign-in.ts";
import type { EngineCore } from "../../govern/core.ts";
import { isExpired } from "../../govern/expiry.ts";
import { hmacHex, sameSecret } from "../../kernel/hash.ts";
import { consumeSignIn } from "../../operations/sessions.ts";
import { safeNext } from "./login.ts";

export const SIGN_IN_MS = 600_000;
/** A cookie holds at most 4 KB. Longer return URLs are dropped. */
const MAX_NEXT_CHARS = 1_500;

export interface PendingSignIn {
  readonly id: string;
  readonly expires_ms: number;
  readonly next: string;
}

export class SignInStates {
  private readonly core: EngineCore;
  private readonly key: Buffer;

  constructor(core: EngineCore) {
    this.core = core;
    this.key = Buffer.from(hkdfSync("sha256", core.storeKey, "", "svc console sign-in", 32));
  }

  begin(next: string): PendingSignIn {
    return {
      id: Buffer.from(this.core.env.bytes(32)).toString("base64url"),
      expires_ms: this.core.env.now() + SIGN_IN_MS,
      next: next.length > MAX_NEXT_CHARS ? "/console" : next,
    };
  }

  asked({ id }: PendingSignIn): Omit<SignInRequest, "redirect_uri"> {
    const made = (what: string) => hmacHex(this.key, `${what}:${id}`);
    return { state: made("state"), nonce: made("nonce"), verifier: made("verifier") };
  }

  isState(begun: PendingSignIn, given: string | undefined): boolean {
    return given !== undefined && sameSecret(this.asked(begun).state, given);
  }

  seal({ id, expires_ms, next }: PendingSignIn): string {
    const text = Buffer.from(JSON.stringify([id, expires_ms, next])).toString("base64url");
    return `${text}.${hmacHex(this.key, `sealed:${text}`)}`;
  }

  /** Returns null for a value that this service did not sign, and for an expired sign-in. */
  open(value: string | undefined): PendingSignIn | null {
    const [text, mac] = value?.split(".") ?? [];
    if (!text || !mac || !sameSecret(mac, hmacHex(this.key, `sealed:${text}`))) return null;
    const [id, expires_ms, next] = JSON.parse(Buffer.from(text, "base64url").toString()) as [
      string,
      number,
      string,
    ];
    return isExpired({ expires_ms }, this.core.env.now()) ? null : { id, expires_ms, next: safeNext(next) };
  }

  /** Consumes the sign-in, across all processes. Throws if it was consumed before. */
  consume(begun: PendingSignIn): Promise<void> {
    return consumeSignIn(this.core, begun);
  }
}
