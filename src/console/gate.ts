/**
 * The gate that every request passes before a page or a form gets to run: where it comes from, whose session
 * it is, whether a form belongs to that session. It also keeps the cookies.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { App } from "../app/app.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import { forbidden } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import { localPerson, type Principal } from "../model/roles.ts";
import { Form } from "./ctx.ts";
import { isArrival, judgeOpen, judgePost, type Source } from "./guard.ts";
import { html } from "./html.ts";
import { safeNext } from "./login.ts";
import { secure, sendHtml } from "./send.ts";
import { ConsoleSessions, type Notice, SESSION_MS } from "./session.ts";
import { bare } from "./shell.ts";

/** What is known of a request once it has passed. */
interface Admission {
  token: string;
  /** The browser does not have the token yet. */
  fresh: boolean;
  /** Null for a visitor who has to log in first. */
  principal: Principal | null;
  /** When that was looked at, by performance.now. */
  admitted_at: number;
}

const noForm = () =>
  forbidden("this form does not belong to your session (its CSRF field is missing or of another session)");

export class Gate {
  readonly mode: "open" | "login";
  readonly sessions: ConsoleSessions;
  private readonly settings: App["settings"];
  private readonly visits = new WeakMap<FastifyRequest, Admission>();
  private readonly flash: string;

  constructor(app: App, auth: Pick<Authenticator, "holderOf" | "today">) {
    this.settings = app.settings;
    this.mode = app.settings.console.mode === "open" ? "open" : "login";
    this.sessions = new ConsoleSessions(app.core, auth);
    this.flash = `${this.sessions.cookie}_said`;
  }

  async admit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    secure(reply);
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

  /** Every form carries a field that only its own session's pages have. */
  checkForm(request: FastifyRequest): void {
    if (request.method !== "POST") return;
    const visit = this.visits.get(request);
    const given = new Form(request.body).text("csrf");
    if (visit === undefined || !this.sessions.isCsrf(visit.token, given)) throw noForm();
  }

  /** Whoever sent a form that took its time may be another principal by now, or none. */
  async lookAgain(request: FastifyRequest): Promise<void> {
    const visit = this.visits.get(request);
    if (visit === undefined || performance.now() - visit.admitted_at < LIMITS.look_again_ms) return;
    visit.principal = await this.holder(visit.token);
    request.principal = visit.principal;
  }

  /** Undefined for a request that was turned away before it was known who sends it. */
  visit(request: FastifyRequest): Admission | undefined {
    return this.visits.get(request);
  }

  async holder(token: string | undefined): Promise<Principal | null> {
    if (this.mode === "open") return localPerson(this.settings.console.role);
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

  leaveNotice(reply: FastifyReply, token: string, notice: Notice): void {
    reply.setCookie(this.flash, this.sessions.sealNotice(token, notice), {
      ...this.cookieOptions(),
      maxAge: 60,
    });
  }

  /** The message that the form before this page left; it is shown once. */
  takeNotice(request: FastifyRequest, reply: FastifyReply, token: string): Notice | null {
    const value = request.cookies[this.flash];
    if (value === undefined || request.method !== "GET") return null;
    reply.clearCookie(this.flash, this.cookieOptions());
    return this.sessions.openNotice(token, value);
  }

  private judge(request: FastifyRequest): Source {
    if (this.mode === "open") return judgeOpen(request);
    return request.method === "POST" ? judgePost(request, this.settings.console_url) : "own";
  }

  private cookieOptions() {
    const secure = this.settings.secure_cookies;
    return { path: "/console", httpOnly: true, sameSite: "strict" as const, secure };
  }
}

/** A link from elsewhere into an open console is not followed, but the reader may walk in from here. */
function refuse(request: FastifyRequest, reply: FastifyReply, source: Source): FastifyReply {
  const words =
    source === "foreign_host"
      ? html`<p>This console answers only at <code>localhost</code> or <code>127.0.0.1</code>.</p>`
      : isArrival(request)
        ? html`<p>You followed a link from another site. This console asks for no login, so it opens only from its own pages.</p><p><a class="button primary" href="${safeNext(request.url)}">Open the console</a></p>`
        : html`<p>This request did not come from one of the console's own pages, so it was not carried out.</p>`;
  return sendHtml(reply, 403, bare("Refused", html`<h1>Refused</h1>`, words));
}
