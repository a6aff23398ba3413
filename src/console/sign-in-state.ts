/**
 * What the console remembers of a sign-in while the person is at the issuer. The browser keeps it, sealed; the store
 * learns of it only once the issuer has said who it is, so people who are not known yet cannot fill it. State, nonce
 * and PKCE verifier are made from the sealed id with a key that the browser does not have.
 */
import { hkdfSync } from "node:crypto";
import type { SignInRequest } from "../auth/sign-in.ts";
import type { Core } from "../engine/core.ts";
import { conflict } from "../kernel/errors.ts";
import { hmacHex, sameSecret, sha256Hex } from "../kernel/hash.ts";
import { safeNext } from "./login.ts";

export const SIGN_IN_MS = 600_000;
const DOC = "console_sign_ins";
/** A cookie holds four kilobytes at most; a longer way back is given up. */
const MOST_NEXT_CHARS = 1_500;

export interface BegunSignIn {
  readonly id: string;
  readonly expires_ms: number;
  readonly next: string;
}

export class SignIns {
  private readonly core: Core;
  private readonly key: Buffer;

  constructor(core: Core) {
    this.core = core;
    this.key = Buffer.from(hkdfSync("sha256", core.storeKey, "", "svc console sign-in", 32));
  }

  begin(next: string): BegunSignIn {
    return {
      id: Buffer.from(this.core.env.bytes(32)).toString("base64url"),
      expires_ms: this.core.env.now() + SIGN_IN_MS,
      next: next.length > MOST_NEXT_CHARS ? "/console" : next,
    };
  }

  asked({ id }: BegunSignIn): Omit<SignInRequest, "redirect_uri"> {
    const made = (what: string) => hmacHex(this.key, `${what}:${id}`);
    return { state: made("state"), nonce: made("nonce"), verifier: made("verifier") };
  }

  isState(begun: BegunSignIn, given: string | undefined): boolean {
    return given !== undefined && sameSecret(this.asked(begun).state, given);
  }

  seal({ id, expires_ms, next }: BegunSignIn): string {
    const text = Buffer.from(JSON.stringify([id, expires_ms, next])).toString("base64url");
    return `${text}.${hmacHex(this.key, `sealed:${text}`)}`;
  }

  /** Null for what this service did not seal, and for a sign-in whose time is up. */
  open(value: string | undefined): BegunSignIn | null {
    const [text, mac] = value?.split(".") ?? [];
    if (!text || !mac || !sameSecret(mac, hmacHex(this.key, `sealed:${text}`))) return null;
    const [id, expires_ms, next] = JSON.parse(Buffer.from(text, "base64url").toString()) as [
      string,
      number,
      string,
    ];
    return this.core.env.now() < expires_ms ? { id, expires_ms, next: safeNext(next) } : null;
  }

  /** A sign-in counts once, in whichever process its answer arrives; those whose time is up need no remembering. */
  spend({ id, expires_ms }: BegunSignIn): Promise<void> {
    const name = sha256Hex(id);
    const now = this.core.env.now();
    return this.core.store.transact({
      needs: [["meta", DOC]],
      run(tx) {
        const spent = (tx.get("meta", DOC) ?? {}) as Record<string, number>;
        if (Object.hasOwn(spent, name)) throw conflict("sign_in_used", "this sign-in was used already");
        const live = Object.entries(spent).filter(([, until]) => until > now);
        tx.put("meta", DOC, { ...Object.fromEntries(live), [name]: expires_ms });
      },
    });
  }
}
