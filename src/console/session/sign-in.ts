/**
 * `Sign in with <issuer>`: redirect to the identity provider and callback. The callback works once, for ten minutes, in
 * the browser that started the sign-in. The session is the same as after pasting a token.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type IssuerSignIn, type SignInRequest, toShownErrorCode } from "../../auth/sign-in.ts";
import { forbiddenError, invalidError, messageOf, SvcError } from "../../kernel/errors.ts";
import { capitalizeFirst } from "../../kernel/text/phrases.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { CONNECT_PATH } from "../../operations/upstreams/connect.ts";
import { pageFailureOf } from "../errors.ts";
import { safeHtml } from "../html.ts";
import { singleValueQuery } from "../page-context.ts";
import { noticeBox } from "../parts/blocks.ts";
import { sendHtml } from "../send.ts";
import { barePage } from "../shell.ts";
import { arrivalPage, beginSession, safeNext } from "./login.ts";
import type { RequestGuard } from "./request-guard.ts";
import { isLocalHost } from "./request-source.ts";
import { type PendingSignIn, SIGN_IN_MS, SignInStates } from "./sign-in-state.ts";

const CALLBACK = "/console/login/callback";

export class ConsoleSignIn {
  private readonly app: ServiceApp;
  private readonly gate: RequestGuard;
  private readonly issuer: IssuerSignIn;
  private readonly states: SignInStates;
  private readonly cookie: string;

  constructor(app: ServiceApp, gate: RequestGuard, issuer: IssuerSignIn) {
    this.app = app;
    this.gate = gate;
    this.issuer = issuer;
    this.states = new SignInStates(app.core);
    this.cookie = `${gate.sessions.cookie}_sign_in`;
  }

  register(scope: FastifyInstance): void {
    scope.get("/login/issuer", (request, reply) => this.orSay(reply, async () => this.begin(request, reply)));
    scope.get("/login/callback", (request, reply) =>
      this.orSay(reply, async () => this.finish(request, reply)),
    );
  }

  private async begin(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const next = safeNext(singleValueQuery(request.query)["next"]);
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
    // This URL holds the code. Do not send it to the next page.
    reply.header("referrer-policy", "no-referrer");
    const { state, code, error, iss } = singleValueQuery(request.query);
    const begun = this.states.open(request.cookies[this.cookie]);
    if (begun === null || !this.states.isState(begun, state))
      throw invalidError("this sign-in was not started in this browser, or it took longer than ten minutes");
    reply.clearCookie(this.cookie, this.cookieOptions());
    if (iss !== undefined && iss !== this.issuer.issuer)
      throw invalidError("this response is from another issuer");
    if (code === undefined) throw forbiddenError(`the issuer did not sign you in${toShownErrorCode(error)}`);
    const verified = await this.issuer.redeem(code, this.asked(request, begun));
    await this.states.consume(begun);
    const found = { ...verified, kind: "oidc", key_sha256: null } as const;
    const consents = begun.next.startsWith(CONNECT_PATH);
    this.gate.setToken(reply, await beginSession(this.gate.sessions, found, consents));
    // The browser withholds the strict cookie on this redirect from the provider, so continue from a console page.
    return sendHtml(reply, 200, arrivalPage(begun.next));
  }

  private asked(request: FastifyRequest, begun: PendingSignIn): SignInRequest {
    return { ...this.states.asked(begun), redirect_uri: this.redirectUri(request) };
  }

  /** The `host` header is trusted only if it names this machine. */
  private redirectUri({ headers: { host = "" } }: FastifyRequest): string {
    const { console_url } = this.app.settings;
    if (console_url !== null) return `${console_url}${CALLBACK}`;
    if (isLocalHost(host)) return `http://${host}${CALLBACK}`;
    throw invalidError(
      "signing in from another machine needs console_url (SVC_CONSOLE_URL), the URL of this console",
    );
  }

  /** A lax cookie, because the browser must send it when the provider redirects back. It grants no access alone. */
  private cookieOptions() {
    const { secure_cookies: secure } = this.app.settings;
    return { path: "/console/login", httpOnly: true, sameSite: "lax" as const, secure };
  }

  /** Shows sign-in errors. Leaves the session cookie alone: a forged callback must not end an existing session. */
  private async orSay(reply: FastifyReply, run: () => Promise<FastifyReply>): Promise<FastifyReply> {
    try {
      return await run();
    } catch (error) {
      const failure = pageFailureOf(error);
      if (!(error instanceof SvcError) || failure === null) throw error;
      if (failure.status >= 500) this.app.log.warn("a sign-in failed", { problem: messageOf(error) });
      const page = barePage(
        "Not signed in",
        safeHtml`<h1>Not signed in</h1>`,
        noticeBox("bad", safeHtml`<p class="said">${capitalizeFirst(error.message)}.</p>`),
        safeHtml`<p>Nothing was changed. Try again from the login page. If it fails again, ask the operator of this service to check its log and run <code>svc doctor</code>.</p><p class="actions"><a class="button primary" href="/console/login">Back to login</a></p>`,
      );
      return sendHtml(reply, failure.status, page);
    }
  }
}
