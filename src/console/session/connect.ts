/**
 * The page at which a person connects an upstream, and the callback of its issuer. The page names the upstream, the
 * scopes and the person. A sign-in is bound to the session that began it, by a cookie that gives no access.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { clientMetadata } from "../../auth/upstream-oauth.ts";
import { needsConsent } from "../../config/sections/gateway.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { invalidError, messageOf, notFoundError, SvcError } from "../../kernel/errors.ts";
import { sameSecret } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { capitalizeFirst } from "../../kernel/text/phrases.ts";
import type { ServiceApp } from "../../operations/app.ts";
import {
  beginConnect,
  CALLBACK_PATH,
  CLIENT_PATH,
  CONNECT_PATH,
  type ConnectRequest,
  finishConnect,
  readConnectLink,
  stateKey,
} from "../../operations/upstreams/connect.ts";
import { pageFailureOf } from "../errors.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { singleValueQuery } from "../page-context.ts";
import { noticeBox } from "../parts/blocks.ts";
import { formElement, submitButton } from "../parts/forms.ts";
import { sendHtml, setSecurityHeaders } from "../send.ts";
import { barePage } from "../shell.ts";
import { continuePage } from "./login.ts";
import type { RequestGuard } from "./request-guard.ts";

export class ConsoleConnect {
  private readonly app: ServiceApp;
  private readonly gate: RequestGuard;

  constructor(app: ServiceApp, gate: RequestGuard) {
    this.app = app;
    this.gate = gate;
  }

  register(scope: FastifyInstance): void {
    scope.get("/upstreams/connect/:link", (request, reply) =>
      this.orSay(reply, () => this.show(request, reply)),
    );
    scope.post("/upstreams/connect/:link", (request, reply) =>
      this.orSay(reply, () => this.begin(request, reply)),
    );
  }

  registerCallback(scope: FastifyInstance): void {
    scope.addHook("onRequest", async (_request, reply) => {
      setSecurityHeaders(reply);
      // This URL holds the code. Do not send it to the next page.
      reply.header("referrer-policy", "no-referrer");
    });
    for (const path of [CALLBACK_PATH, `${CALLBACK_PATH}/:mark`])
      scope.get(path, (request, reply) => this.orSay(reply, () => this.finish(request, reply)));
    scope.get(`${CLIENT_PATH}:mark`, async (request) => this.clientDocument(request));
  }

  /** The signed-in person, or null. */
  private async person(request: FastifyRequest): Promise<CallerPrincipal | null> {
    const { sessions } = this.gate;
    const token = sessions.readToken(request.cookies[sessions.cookie]);
    return token === undefined ? null : ((await sessions.personOf(sessions.idOf(token))) ?? null);
  }

  private async show(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const visit = this.gate.visit(request)!;
    const person = await this.person(request);
    if (person === null) return this.askToSignIn(request, reply);
    const asked = await readConnectLink(this.app, person, linkOf(request));
    this.gate.keepToken(reply, visit);
    const page = connectPage(asked, person, {
      csrf: this.gate.sessions.csrf(visit.token),
      action: request.url,
    });
    return sendHtml(reply, 200, page);
  }

  private askToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const next = `${CONNECT_PATH}${encodeURIComponent(linkOf(request))}`;
    return reply.redirect(`/console/login?next=${encodeURIComponent(next)}`, 303);
  }

  private async begin(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { sessions } = this.gate;
    const person = await this.person(request);
    if (person === null) return this.askToSignIn(request, reply);
    const session = sessions.idOf(this.gate.visit(request)!.token);
    const { url, state } = await beginConnect(this.app, person, linkOf(request), session);
    reply.setCookie(this.cookieOf(state), this.seal(state, session), {
      ...this.cookieOptions(),
      maxAge: SERVICE_LIMITS.connect_link_ms / 1_000,
    });
    reply.header("referrer-policy", "no-referrer");
    // A form cannot redirect to another site under the content policy, so a page does.
    return sendHtml(reply, 200, continuePage(url, `Continue to ${new URL(url).host}`));
  }

  private async finish(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { state = "", code, error, iss } = singleValueQuery(request.query);
    const { mark: as } = request.params as { mark?: string };
    const session =
      stateKey(state) === null ? null : this.sessionOf(request.cookies[this.cookieOf(state)], state);
    const person = session === null ? undefined : await this.gate.sessions.personOf(session);
    if (session === null || person === undefined)
      throw invalidError("this sign-in was not started in this session, or it took longer than ten minutes");
    reply.clearCookie(this.cookieOf(state), this.cookieOptions());
    const doc = await finishConnect(this.app, person, session, { state, code, error, iss, as });
    return sendHtml(reply, 200, connectedPage(doc.upstream, doc.name));
  }

  /** Describes the gateway to issuers, if they accept a document instead of a registration. */
  private clientDocument({ params }: FastifyRequest) {
    const { mark } = params as { mark: string };
    const { console_url, upstreams } = this.app.settings;
    if (console_url === null || !upstreams.some(needsConsent) || !/^[0-9a-f]{16}$/.test(mark))
      throw notFoundError("unknown path", "unknown_route");
    return {
      client_id: `${console_url}${CLIENT_PATH}${mark}`,
      ...clientMetadata(`${console_url}${CALLBACK_PATH}/${mark}`),
      token_endpoint_auth_method: "none",
    };
  }

  private cookieOf(state: string): string {
    return `${this.gate.sessions.cookie}_connect_${stateKey(state)!.slice(0, 8)}`;
  }

  private seal(state: string, session: string): string {
    return `${session}.${this.gate.sessions.sign(`connect:${state}:${session}`)}`;
  }

  /** Id of the session that began the sign-in, or null. */
  private sessionOf(value: string | undefined, state: string): string | null {
    const [session = ""] = value?.split(".") ?? [];
    return value !== undefined && sameSecret(this.seal(state, session), value) ? session : null;
  }

  /** A lax cookie, because the browser must send it when the issuer redirects back. */
  private cookieOptions() {
    const { secure_cookies: secure } = this.app.settings;
    return { path: "/oauth", httpOnly: true, sameSite: "lax" as const, secure };
  }

  private async orSay(reply: FastifyReply, run: () => Promise<FastifyReply>): Promise<FastifyReply> {
    try {
      return await run();
    } catch (error) {
      const failure = pageFailureOf(error);
      if (!(error instanceof SvcError) || failure === null) throw error;
      if (failure.status >= 500)
        this.app.log.warn("connecting an upstream failed", { problem: messageOf(error) });
      const page = barePage(
        "Not connected",
        safeHtml`<h1>Not connected</h1>`,
        noticeBox("bad", safeHtml`<p class="said">${capitalizeFirst(error.message)}.</p>`),
        safeHtml`<p>Nothing was changed. Let the agent make its call again to get a new link.</p>`,
      );
      return sendHtml(reply, failure.status, page);
    }
  }
}

const linkOf = ({ params }: FastifyRequest): string => (params as { link: string }).link;

function connectPage(
  { doc, issuer, resource, scopes }: ConnectRequest,
  person: CallerPrincipal,
  { csrf, action }: { csrf: string; action: string },
): HtmlFragment {
  const isOwn = doc.holder?.principal === person.id;
  const whose = doc.holder === null ? "every agent of this service" : isOwn ? "your agents" : doc.name;
  return barePage(
    `Connect ${doc.upstream}`,
    safeHtml`<h1>Connect ${doc.upstream}</h1>`,
    safeHtml`<p>Calls of <b>${whose}</b> will use your account at <b>${issuer}</b>: the one that you sign in with next.</p>
<dl class="facts"><dt>Tool server</dt><dd>${doc.upstream} (${resource})</dd><dt>For</dt><dd>${doc.name}${doc.tenant === null ? emptyHtml : safeHtml`, tenant ${doc.tenant}`}</dd><dt>Signed in as</dt><dd>${person.name}</dd><dt>Access</dt><dd>${scopes.length === 0 ? "what the issuer decides" : safeHtml`<ul class="scopes">${scopes.map((scope) => safeHtml`<li><code>${scope}</code></li>`)}</ul>`}</dd></dl>`,
    isOwn
      ? emptyHtml
      : noticeBox(
          "warn",
          safeHtml`<p>Agents of others will use this account. Sign in at ${issuer} with one that is meant for this.</p>`,
        ),
    formElement({ csrf }, { action, class: "login" }, submitButton(`Continue to ${issuer}`, "primary")),
    safeHtml`<p class="hint">This link works once. To end the connection later, use Upstreams in the console, or <code>svc upstreams revoke</code>.</p>`,
  );
}

function connectedPage(upstream: string, name: string): HtmlFragment {
  return barePage(
    "Connected",
    safeHtml`<h1>Connected</h1>`,
    safeHtml`<p><b>${upstream}</b> is connected for <b>${name}</b>. The agent can continue; you can close this page.</p>`,
  );
}
