/**
 * Sends the requests of a principal's connection with that principal's tokens. A token that the upstream refuses is
 * renewed once. Nothing is sent without a token, and redirects are not followed.
 */
import { extractWWWAuthenticateParams } from "@modelcontextprotocol/client";
import { isPersonal, type UpstreamSpec } from "../../config/sections/gateway.ts";
import { isExpired } from "../../govern/expiry.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { isJsonObject } from "../../kernel/json/json.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { ServiceApp } from "../../operations/app.ts";
import {
  type AuthorizedUpstream,
  accessToken,
  EVERY_TOOL,
  exchangedToken,
  missingConsent,
  noteWantedScopes,
} from "../../operations/upstreams/upstream-access.ts";
import { NotSentError } from "./failure.ts";

type Send = typeof globalThis.fetch;

const SUBJECTS = 10_000;
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;
const MAX_SCOPES = 100;

const NO_CONSENT = "it needs your consent; make the call again to get a link";
const NO_SERVICE_CONSENT = "an admin has to connect it in the console, under Upstreams";

interface Subject {
  token: string;
  expires_ms: number | null;
}

export class UpstreamTokens {
  private readonly app: ServiceApp;
  /** The last token of each caller, for exchange. It is in memory only. */
  private readonly subjects = new LruMap<string, Subject>(SUBJECTS);
  private readonly exchanged = new LruMap<string, { token: string; expires_ms: number | null }>(SUBJECTS);
  /** Whether callers' tokens are needed at all. */
  readonly exchanges: boolean;

  constructor(app: ServiceApp) {
    this.app = app;
    this.exchanges = app.settings.upstreams.some((spec) => authOf(spec)?.auth.type === "exchange");
  }

  /** Remembers a caller's token, which an upstream with exchange needs. */
  noteSubject(principal: string, subject: Subject): void {
    if (this.exchanges) this.subjects.set(principal, subject);
  }

  /** Whether requests of this principal can be sent. Null for the service. */
  async isReady(spec: UpstreamSpec, principal: string | null): Promise<boolean> {
    const authorized = authOf(spec);
    if (authorized?.auth.type === "exchange") return this.subjectOf(principal) !== null;
    return authorized === null || (await missingConsent(this.app, spec, principal, null)) === null;
  }

  /** Undefined for an upstream without its own sign-in. */
  sender(spec: UpstreamSpec, principal: string | null): Send | undefined {
    const authorized = authOf(spec);
    if (authorized === null) return undefined;
    const token = (refused?: string) => this.token(authorized, principal, refused);
    return (input, init) => this.send(authorized, { principal, token }, input, init);
  }

  private async token(spec: AuthorizedUpstream, principal: string | null, refused?: string): Promise<string> {
    const found =
      spec.auth.type === "exchange"
        ? await this.exchange(spec, principal, refused)
        : await accessToken(this.app, spec, principal, refused);
    if (found !== null) return found;
    throw new NotSentError(isPersonal(spec) ? NO_CONSENT : NO_SERVICE_CONSENT);
  }

  private subjectOf(principal: string | null): Subject | null {
    const subject = principal === null ? undefined : this.subjects.get(principal);
    return subject === undefined || isExpired(subject, this.app.core.env.now()) ? null : subject;
  }

  private async exchange(
    spec: AuthorizedUpstream,
    principal: string | null,
    refused?: string,
  ): Promise<string> {
    const subject = this.subjectOf(principal);
    if (subject === null)
      throw new NotSentError(
        "it needs the caller's own token: sign in to the gateway at the issuer, and call again",
      );
    const key = sha256Hex(JSON.stringify([spec.name, principal, subject.token]));
    const known = this.exchanged.get(key);
    const isGood = known !== undefined && !isExpired(known, this.app.core.env.now());
    if (isGood && known.token !== refused) return known.token;
    const found = await exchangedToken(this.app, spec, subject.token);
    this.exchanged.set(key, found);
    return found.token;
  }

  private async send(
    spec: AuthorizedUpstream,
    { principal, token }: { principal: string | null; token(refused?: string): Promise<string> },
    input: Parameters<Send>[0],
    init: Parameters<Send>[1],
  ): Promise<Response> {
    const { egress } = this.app;
    const sendWith = (access: string) => {
      const headers = new Headers(init?.headers);
      headers.set("authorization", `Bearer ${access}`);
      return egress.fetch(input, { ...init, headers, redirect: "manual" });
    };
    const access = await token();
    let response = await sendWith(access);
    if (response.status === 401) {
      await discard(response);
      response = await sendWith(await token(access));
    }
    const { status } = response;
    if (status === 401) {
      await discard(response);
      throw new NotSentError(
        "it refuses the tokens of this connection; revoke the connection, and connect again",
      );
    }
    if (status >= 300 && status < 400) {
      await discard(response);
      throw new NotSentError("it answers with a redirect, which is not followed");
    }
    if (status === 403) await this.assertScopes(spec, principal, init, response);
    return response;
  }

  /** Notes the scopes that a refused call needs. Throws if there are any. */
  private async assertScopes(
    spec: AuthorizedUpstream,
    principal: string | null,
    init: Parameters<Send>[1],
    response: Response,
  ): Promise<void> {
    const { error, scope } = extractWWWAuthenticateParams(response);
    if (error !== "insufficient_scope") return;
    await discard(response);
    const scopes = (scope ?? "").split(" ").filter((one) => SCOPE.test(one));
    const tool = calledTool(init?.body);
    if (spec.auth.type === "oauth" && tool !== null && scopes.length > 0)
      await noteWantedScopes(this.app, spec, principal, { tool, scopes: scopes.slice(0, MAX_SCOPES) });
    const next = isPersonal(spec) ? "make the call again to get a link" : NO_SERVICE_CONSENT;
    throw new NotSentError(`it needs further access (${scopes.join(" ") || "unnamed scopes"}); ${next}`);
  }
}

function authOf(spec: UpstreamSpec): AuthorizedUpstream | null {
  return "url" in spec && spec.auth !== null ? (spec as AuthorizedUpstream) : null;
}

async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {});
}

/** Requests of the connection itself, which every call needs. */
const OPENING = new Set(["initialize", "server/discover", "tools/list"]);

/** The tool that a request calls. Empty for a request that every call needs. Null for any other. */
function calledTool(body: unknown): string | null {
  if (typeof body !== "string") return null;
  try {
    const message: unknown = JSON.parse(body);
    if (!isJsonObject(message)) return null;
    const { method, params } = message;
    if (typeof method === "string" && OPENING.has(method)) return EVERY_TOOL;
    const name = method === "tools/call" && isJsonObject(params) ? params["name"] : undefined;
    return typeof name === "string" ? name : null;
  } catch {
    return null;
  }
}
