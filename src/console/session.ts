/**
 * Who is at the other end. The browser keeps a random token; the store keeps, under its hash, which credential
 * it stands for, so that every process knows it, a restart does not end it, and logging out does. The
 * credential is looked at again on every request: a key that was disabled is out at once, and the groups of a
 * token mean what the role map says now.
 */
import { hkdfSync } from "node:crypto";
import type { Authenticated, Authenticator } from "../auth/authenticate.ts";
import type { Core } from "../engine/core.ts";
import { hmacHex, sameSecret, sha256Hex } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import { hasRole, keptOf, type Principal } from "../model/roles.ts";

export const SESSION_MS = 12 * 3_600_000;
const MOST_SESSIONS = 2_000;
const DOC = "console_sessions";
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

interface ConsoleSession {
  /** Null for a token's session. */
  key_sha256: string | null;
  /** Who a token spoke for, and its groups; what they may is looked up anew, as a key's holder is. */
  principal: Principal | null;
  expires_ms: number;
}
type SessionDoc = Record<string, ConsoleSession>;

export interface Notice {
  kind: "ok" | "warn";
  text: string;
}

export class ConsoleSessions {
  readonly cookie: string;
  private readonly core: Core;
  private readonly auth: Pick<Authenticator, "holderOf" | "today">;
  private readonly key: Buffer;

  constructor(core: Core, auth: Pick<Authenticator, "holderOf" | "today">) {
    this.core = core;
    this.auth = auth;
    this.key = Buffer.from(hkdfSync("sha256", core.storeKey, "", "svc console", 32));
    // Cookies do not know ports: two services on one machine must not take each other's.
    this.cookie = `svc_console_${hmacHex(this.key, "cookie").slice(0, 8)}`;
  }

  newToken(): string {
    return Buffer.from(this.core.env.bytes(32)).toString("base64url");
  }

  /** The token as it came, or undefined where it cannot be one. */
  readToken(value: string | undefined): string | undefined {
    return value !== undefined && TOKEN.test(value) ? value : undefined;
  }

  /** What every form of this token's pages carries, and those of no other. */
  csrf(token: string): string {
    return hmacHex(this.key, `csrf:${token}`);
  }

  isCsrf(token: string, given: string): boolean {
    return sameSecret(this.csrf(token), given);
  }

  /** Answers a fresh token: one that was known before the login must not be worth anything after it. */
  async begin({ principal, kind, key_sha256, expires_ms }: Authenticated): Promise<string> {
    const token = this.newToken();
    const now = this.core.env.now();
    const session: ConsoleSession = {
      key_sha256,
      principal: kind === "oidc" ? principal : null,
      expires_ms: Math.min(expires_ms ?? Number.POSITIVE_INFINITY, now + SESSION_MS),
    };
    await this.change((doc) => ({
      ...newest(live(doc, now), MOST_SESSIONS - 1),
      [sha256Hex(token)]: session,
    }));
    return token;
  }

  async end(token: string): Promise<void> {
    const id = sha256Hex(token);
    await this.change((doc) => Object.fromEntries(Object.entries(doc).filter(([key]) => key !== id)));
  }

  /** Whom the token stands for now; undefined once its key or token has ended, or the person logged out. */
  async holder(token: string): Promise<Principal | undefined> {
    const doc = ((await this.core.store.get("meta", DOC)) ?? {}) as unknown as SessionDoc;
    const id = sha256Hex(token);
    const session = Object.hasOwn(doc, id) ? doc[id] : undefined;
    if (session === undefined || session.expires_ms <= this.core.env.now()) return undefined;
    const principal = this.today(session);
    return principal && hasRole(principal, "auditor") ? principal : undefined;
  }

  private today({ key_sha256, principal }: ConsoleSession): Principal | null | undefined {
    if (key_sha256 !== null) return this.auth.holderOf(key_sha256);
    return principal && this.auth.today(keptOf(principal));
  }

  /** A message for the next page, which only the server can put there. */
  sealNotice(token: string, notice: Notice): string {
    const text = Buffer.from(JSON.stringify([notice.kind, notice.text.slice(0, 600)])).toString("base64url");
    return `${text}.${hmacHex(this.key, `notice:${token}:${text}`)}`;
  }

  openNotice(token: string, value: string | undefined): Notice | null {
    const [text, mac] = value?.split(".") ?? [];
    if (!text || !mac || !sameSecret(mac, hmacHex(this.key, `notice:${token}:${text}`))) return null;
    const [kind, said] = JSON.parse(Buffer.from(text, "base64url").toString()) as [Notice["kind"], string];
    return { kind, text: said };
  }

  private change(edit: (doc: SessionDoc) => SessionDoc): Promise<void> {
    return this.core.store.transact({
      needs: [["meta", DOC]],
      run(tx) {
        const doc = (tx.get("meta", DOC) ?? {}) as unknown as SessionDoc;
        tx.put("meta", DOC, edit(doc) as unknown as Json);
      },
    });
  }
}

function live(doc: SessionDoc, now: number): SessionDoc {
  return Object.fromEntries(Object.entries(doc).filter(([, { expires_ms }]) => expires_ms > now));
}

function newest(doc: SessionDoc, most: number): SessionDoc {
  return Object.fromEntries(
    Object.entries(doc)
      .sort(([, a], [, b]) => b.expires_ms - a.expires_ms)
      .slice(0, most),
  );
}
