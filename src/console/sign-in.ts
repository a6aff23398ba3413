/**
 * `Sign in with <issuer>`: the way there and the way back. An answer counts only in the browser that asked, once and
 * for ten minutes; the session that it begins is the same as after a pasted token.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { App } from "../app/app.ts";
import { type IssuerSignIn, type SignInRequest, shownCode } from "../auth/sign-in.ts";
import { forbidden, invalid, messageOf, SvcError } from "../kernel/errors.ts";
import { sentence } from "../kernel/words.ts";
import { plainQuery } from "./ctx.ts";
import { pageFailureOf } from "./errors.ts";
import type { Gate } from "./gate.ts";
import { isLocalHost } from "./guard.ts";
import { html } from "./html.ts";
import { arrivalPage, beginSession, safeNext } from "./login.ts";
import { notice } from "./parts/blocks.ts";
import { sendHtml } from "./send.ts";
import { bare } from "./shell.ts";
import { type BegunSignIn, SIGN_IN_MS, SignIns } from "./sign-in-state.ts";

const CALLBACK = "/console/login/callback";

export class ConsoleSignIn {
  private readonly app: App;
  private readonly gate: Gate;
  private readonly issuer: IssuerSignIn;
  private readonly states: SignIns;
  private readonly cookie: string;

  constructor(app: App, gate: Gate, issuer: IssuerSignIn) {
    this.app = app;
    this.gate = gate;
    this.issuer = issuer;
    this.states = new SignIns(app.core);
    this.cookie = `${gate.sessions.cookie}_sign_in`;
  }

  register(scope: FastifyInstance): void {
    scope.get("/login/issuer", (request, reply) => this.orSay(reply, async () => this.begin(request, reply)));
    scope.get("/login/callback", (request, reply) =>
      this.orSay(reply, async () => this.finish(request, reply)),
    );
  }

  private async begin(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const next = safeNext(plainQuery(request.query)["next"]);
    if (this.gate.visit(request)!.principal !== null) return reply.redirect(next, 303);
    const begun = this.states.begin(next);
    const address = await this.issuer.address(this.asked(request, begun));
    reply.setCookie(this.cookie, this.states.seal(begun), {
      ...this.cookieOptions(),
      maxAge: SIGN_IN_MS / 1_000,
    });
    return reply.redirect(address, 303);
  }

  private async finish(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // This page's address holds the code; the next one has no business with it.
    reply.header("referrer-policy", "no-referrer");
    const { state, code, error, iss } = plainQuery(request.query);
    const begun = this.states.open(request.cookies[this.cookie]);
    if (begun === null || !this.states.isState(begun, state))
      throw invalid("this sign-in was not begun in this browser, or it took longer than ten minutes");
    reply.clearCookie(this.cookie, this.cookieOptions());
    if (iss !== undefined && iss !== this.issuer.issuer) throw invalid("this answer is of another issuer");
    if (code === undefined) throw forbidden(`the issuer did not sign you in${shownCode(error)}`);
    const verified = await this.issuer.redeem(code, this.asked(request, begun));
    await this.states.spend(begun);
    const found = { ...verified, kind: "oidc", key_sha256: null } as const;
    this.gate.setToken(reply, await beginSession(this.gate.sessions, found));
    // The strict cookie is not sent along on a way that began at the issuer: the reader goes on from a page of ours.
    return sendHtml(reply, 200, arrivalPage(begun.next));
  }

  private asked(request: FastifyRequest, begun: BegunSignIn): SignInRequest {
    return { ...this.states.asked(begun), redirect_uri: this.redirectUri(request) };
  }

  /** Whatever name a request was sent to is not believed, unless it is this machine's own. */
  private redirectUri({ headers: { host = "" } }: FastifyRequest): string {
    const { console_url } = this.app.settings;
    if (console_url !== null) return `${console_url}${CALLBACK}`;
    if (isLocalHost(host)) return `http://${host}${CALLBACK}`;
    throw invalid(
      "signing in from another machine needs console_url (SVC_CONSOLE_URL), the address of this console",
    );
  }

  /** Sent along when the issuer sends the browser back, which a strict cookie is not; it opens nothing by itself. */
  private cookieOptions() {
    const { secure_cookies: secure } = this.app.settings;
    return { path: "/console/login", httpOnly: true, sameSite: "lax" as const, secure };
  }

  /** No cookie of a session is touched here: a forged answer must not end the session that a browser has. */
  private async orSay(reply: FastifyReply, run: () => Promise<FastifyReply>): Promise<FastifyReply> {
    try {
      return await run();
    } catch (error) {
      const failure = pageFailureOf(error);
      if (!(error instanceof SvcError) || failure === null) throw error;
      if (failure.status >= 500) this.app.log.warn("a sign-in failed", { problem: messageOf(error) });
      const page = bare(
        "Not signed in",
        html`<h1>Not signed in</h1>`,
        notice("bad", html`<p class="said">${sentence(error.message)}.</p>`),
        html`<p>Nothing was changed. Begin again at the login page; if this comes back, whoever runs the service finds more in its log and with <code>svc doctor</code>.</p><p class="actions"><a class="button primary" href="/console/login">Back to the login</a></p>`,
      );
      return sendHtml(reply, failure.status, page);
    }
  }
}
