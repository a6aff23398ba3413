/**
 * Console sessions. The browser keeps a random token. The store maps its hash to a credential, so all processes know
 * the session, it survives restarts, and logging out ends it. Each request checks the credential again: a disabled key
 * loses access at once, and a token's groups follow the current role map.
 */

import { hkdfSync } from "node:crypto";
import type { AuthenticatedCaller, RequestAuthenticator } from "../../auth/authenticate.ts";
import type { EngineCore } from "../../govern/core.ts";
import { isExpired } from "../../govern/expiry.ts";
import { type CallerPrincipal, hasRole, toStoredPrincipal } from "../../govern/roles.ts";
import { hmacHex, sameSecret, sha256Hex } from "../../kernel/hash.ts";
import { changeSessions, readSessions } from "../../operations/sessions.ts";

export const SESSION_MS = 12 * 3_600_000;
const MAX_SESSIONS = 2_000;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

interface ConsoleSession {
  /** Null for a token's session. */
  key_sha256: string | null;
  /** Name and groups from the token. Their permissions are looked up again on each request, as for keys. */
  principal: CallerPrincipal | null;
  expires_ms: number;
}
type SessionDoc = Record<string, ConsoleSession>;

export interface PageNotice {
  kind: "ok" | "warn";
  text: string;
}

export class ConsoleSessions {
  readonly cookie: string;
  private readonly core: EngineCore;
  private readonly auth: Pick<RequestAuthenticator, "holderOf" | "today">;
  private readonly key: Buffer;

  constructor(core: EngineCore, auth: Pick<RequestAuthenticator, "holderOf" | "today">) {
    this.core = core;
    this.auth = auth;
    this.key = Buffer.from(hkdfSync("sha256", core.storeKey, "", "svc console", 32));
    // Cookies ignore ports. A name per store keeps two services on one machine from overwriting each other's session.
    this.cookie = `svc_console_${hmacHex(this.key, "cookie").slice(0, 8)}`;
  }

  newToken(): string {
    return Buffer.from(this.core.env.bytes(32)).toString("base64url");
  }

  /** Returns the token if it is well-formed, else undefined. */
  readToken(value: string | undefined): string | undefined {
    return value !== undefined && TOKEN.test(value) ? value : undefined;
  }

  /** CSRF value that every form of this session carries. */
  csrf(token: string): string {
    return hmacHex(this.key, `csrf:${token}`);
  }

  isCsrf(token: string, given: string): boolean {
    return sameSecret(this.csrf(token), given);
  }

  /** Returns a new token, so that a token known before the login (session fixation) gives no access. */
  async begin({ principal, kind, key_sha256, expires_ms }: AuthenticatedCaller): Promise<string> {
    const token = this.newToken();
    const now = this.core.env.now();
    const session: ConsoleSession = {
      key_sha256,
      principal: kind === "oidc" ? principal : null,
      expires_ms: Math.min(expires_ms ?? Number.POSITIVE_INFINITY, now + SESSION_MS),
    };
    await this.change((doc) => ({
      ...newest(live(doc, now), MAX_SESSIONS - 1),
      [sha256Hex(token)]: session,
    }));
    return token;
  }

  async end(token: string): Promise<void> {
    const id = sha256Hex(token);
    await this.change((doc) => Object.fromEntries(Object.entries(doc).filter(([key]) => key !== id)));
  }

  /** Returns the session's current principal, or undefined if the session, its key or its token has ended. */
  async holder(token: string): Promise<CallerPrincipal | undefined> {
    const principal = await this.personOf(this.idOf(token));
    return principal && hasRole(principal, "auditor") ? principal : undefined;
  }

  /** Id of a session, which gives no access. */
  idOf(token: string): string {
    return sha256Hex(token);
  }

  /** Like `holder`, for the session with this id, and also for a person who can only consent. */
  async personOf(id: string): Promise<CallerPrincipal | undefined> {
    const doc = await readSessions<SessionDoc>(this.core);
    const session = Object.hasOwn(doc, id) ? doc[id] : undefined;
    if (session === undefined || isExpired(session, this.core.env.now())) return undefined;
    return this.today(session) ?? undefined;
  }

  /** Binds a value to the browser that holds it. */
  sign(text: string): string {
    return hmacHex(this.key, `signed:${text}`);
  }

  private today({ key_sha256, principal }: ConsoleSession): CallerPrincipal | null | undefined {
    if (key_sha256 !== null) return this.auth.holderOf(key_sha256);
    return principal && this.auth.today(toStoredPrincipal(principal));
  }

  /** Signs a message for the next page, so that only the server can set it. */
  sealNotice(token: string, notice: PageNotice): string {
    const text = Buffer.from(JSON.stringify([notice.kind, notice.text.slice(0, 600)])).toString("base64url");
    return `${text}.${hmacHex(this.key, `notice:${token}:${text}`)}`;
  }

  openNotice(token: string, value: string | undefined): PageNotice | null {
    const [text, mac] = value?.split(".") ?? [];
    if (!text || !mac || !sameSecret(mac, hmacHex(this.key, `notice:${token}:${text}`))) return null;
    const [kind, said] = JSON.parse(Buffer.from(text, "base64url").toString()) as [
      PageNotice["kind"],
      string,
    ];
    return { kind, text: said };
  }

  private change(edit: (doc: SessionDoc) => SessionDoc): Promise<void> {
    return changeSessions<SessionDoc>(this.core, edit);
  }
}

function live(doc: SessionDoc, now: number): SessionDoc {
  return Object.fromEntries(Object.entries(doc).filter(([, session]) => !isExpired(session, now)));
}

function newest(doc: SessionDoc, most: number): SessionDoc {
  return Object.fromEntries(
    Object.entries(doc)
      .sort(([, a], [, b]) => b.expires_ms - a.expires_ms)
      .slice(0, most),
  );
}
