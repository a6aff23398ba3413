/**
 * Checks every console request before a page or form runs: its origin, its session, and whether a submitted form
 * belongs to that session. Also reads and writes the console cookies.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { RequestAuthenticator } from "../../auth/authenticate.ts";
import { type CallerPrincipal, localConsolePrincipal } from "../../govern/roles.ts";
import { forbiddenError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { safeHtml } from "../html.ts";
import { SubmittedForm } from "../page-context.ts";
import { sendHtml, setSecurityHeaders } from "../send.ts";
import { barePage } from "../shell.ts";
import { safeNext } from "./login.ts";
import {
  classifyFormPost,
  classifyOpenRequest,
  isCrossSiteNavigation,
  type RequestSource,
} from "./request-source.ts";
import { ConsoleSessions, type PageNotice, SESSION_MS } from "./session.ts";

/** Facts about an admitted request. */
interface Admission {
  token: string;
  /** The browser does not have the token yet. */
  fresh: boolean;
  /** Null for a visitor who has to sign in first. */
  principal: CallerPrincipal | null;
  /** Time of the session check, from performance.now. */
  admitted_at: number;
}

const noForm = () =>
  forbiddenError(
    "this form does not belong to your session (its CSRF field is missing or belongs to another session)",
  );

export class RequestGuard {
  readonly mode: "open" | "login";
  readonly sessions: ConsoleSessions;
  private readonly settings: ServiceApp["settings"];
  private readonly visits = new WeakMap<FastifyRequest, Admission>();
  private readonly flash: string;

  constructor(app: ServiceApp, auth: Pick<RequestAuthenticator, "holderOf" | "today">) {
    this.settings = app.settings;
    this.mode = app.settings.console.mode === "open" ? "open" : "login";
    this.sessions = new ConsoleSessions(app.core, auth);
    this.flash = `${this.sessions.cookie}_said`;
  }

  async admit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    setSecurityHeaders(reply);
    const source = this.judge(request);
    if (source !== "own") return refuse(request, reply, source);
    const known = this.sessions.readToken(request.cookies[this.sessions.cookie]);
    if (known === undefined && request.method === "POST") throw noForm();
    const principal = await this.holder(known);
    request.principal = principal;
    const token = known ?? this.sessions.newToken();
    this.visits.set(request, {
      token,
      fresh: known === undefined,
      principal,
      admitted_at: performance.now(),
    });
    return undefined;
  }

  /** Rejects forms without the CSRF field of their session. */
  checkForm(request: FastifyRequest): void {
    if (request.method !== "POST") return;
    const visit = this.visits.get(request);
    const given = new SubmittedForm(request.body).text("csrf");
    if (visit === undefined || !this.sessions.isCsrf(visit.token, given)) throw noForm();
  }

  /** Checks the session again after a slow form upload: the session may have ended or changed since admission. */
  async lookAgain(request: FastifyRequest): Promise<void> {
    const visit = this.visits.get(request);
    if (visit === undefined || performance.now() - visit.admitted_at < SERVICE_LIMITS.look_again_ms) return;
    visit.principal = await this.holder(visit.token);
    request.principal = visit.principal;
  }

  /** Undefined if the request was rejected before its session was read. */
  visit(request: FastifyRequest): Admission | undefined {
    return this.visits.get(request);
  }

  async holder(token: string | undefined): Promise<CallerPrincipal | null> {
    if (this.mode === "open") return localConsolePrincipal(this.settings.console.role);
    return token === undefined ? null : ((await this.sessions.holder(token)) ?? null);
  }

  keepToken(reply: FastifyReply, { token, fresh }: Admission): void {
    if (fresh) this.setToken(reply, token);
  }

  setToken(reply: FastifyReply, token: string): void {
    reply.setCookie(this.sessions.cookie, token, { ...this.cookieOptions(), maxAge: SESSION_MS / 1_000 });
  }

  clearToken(reply: FastifyReply): void {
    reply.clearCookie(this.sessions.cookie, this.cookieOptions());
  }

  leaveNotice(reply: FastifyReply, token: string, notice: PageNotice): void {
    reply.setCookie(this.flash, this.sessions.sealNotice(token, notice), {
      ...this.cookieOptions(),
      maxAge: 60,
    });
  }

  /** Returns the message that the previous form left and deletes it, so that it is shown once. */
  takeNotice(request: FastifyRequest, reply: FastifyReply, token: string): PageNotice | null {
    const value = request.cookies[this.flash];
    if (value === undefined || request.method !== "GET") return null;
    reply.clearCookie(this.flash, this.cookieOptions());
    return this.sessions.openNotice(token, value);
  }

  private judge(request: FastifyRequest): RequestSource {
    if (this.mode === "open") return classifyOpenRequest(request);
    return request.method === "POST" ? classifyFormPost(request, this.settings.console_url) : "own";
  }

  private cookieOptions() {
    const secure = this.settings.secure_cookies;
    return { path: "/console", httpOnly: true, sameSite: "strict" as const, secure };
  }
}

/** Answers 403. For a link from another site to an open console, the page offers a link that opens the console. */
function refuse(request: FastifyRequest, reply: FastifyReply, source: RequestSource): FastifyReply {
  const words =
    source === "foreign_host"
      ? safeHtml`<p>This console is only available at <code>localhost</code> or <code>127.0.0.1</code>.</p>`
      : isCrossSiteNavigation(request)
        ? safeHtml`<p>You followed a link from another site. This console has no login, so it opens only from its own pages.</p><p><a class="button primary" href="${safeNext(request.url)}">Open the console</a></p>`
        : safeHtml`<p>This request did not come from one of the console's own pages, so it was rejected.</p>`;
  return sendHtml(reply, 403, barePage("Request rejected", safeHtml`<h1>Request rejected</h1>`, words));
}
