/** Mounts the console on an HTTP server: routes, responses and error pages. Access checks are in `gate.ts`. */

import cookies from "@fastify/cookie";
import formBodies from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { RequestAuthenticator } from "../auth/authenticate.ts";
import { isLoopbackHost } from "../config/loopback.ts";
import { type CallerPrincipal, tenantBinding } from "../govern/roles.ts";
import { ERROR_CODE_HEADER } from "../http/api/http-row.ts";
import { INTERNAL_CODE } from "../kernel/error-codes.ts";
import { invalidError, messageOf, notFoundError, SvcError } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import { ledgerOf } from "../operations/ledger-reader.ts";
import { appFor } from "../operations/pipeline/access.ts";
import { endPushSession } from "../operations/push/devices.ts";
import { assetRoutes } from "./assets/index.ts";
import { failureBody, failureWords, pageFailureOf } from "./errors.ts";
import { loadHeaderStatus } from "./header-status.ts";
import { HourCounts } from "./hour-counts.ts";
import type { HtmlFragment } from "./html.ts";
import { LiveUpdates } from "./live-updates.ts";
import {
  admitForm,
  type ConsoleRoute,
  createPageContext,
  type PageAnswer,
  type PageContext,
  type SharedPageState,
  SubmittedForm,
  singleValueQuery,
} from "./page-context.ts";
import { pushSession } from "./pages/push.ts";
import { CONSOLE_ROUTES } from "./routes.ts";
import { sendContent, sendHtml } from "./send.ts";
import { ConsoleConnect } from "./session/connect.ts";
import { arrivalPage, logIn, loginPage, loginProblem, safeNext } from "./session/login.ts";
import type { OneTimeLink } from "./session/one-time-link.ts";
import { RequestGuard } from "./session/request-guard.ts";
import { isCrossSiteNavigation } from "./session/request-source.ts";
import type { PageNotice } from "./session/session.ts";
import { ConsoleSignIn } from "./session/sign-in.ts";
import { barePage, framedPage } from "./shell.ts";
import { LedgerVerification } from "./verification.ts";

export interface ConsoleDeps {
  app: ServiceApp;
  auth: Pick<RequestAuthenticator, "authenticateToken" | "holderOf" | "today" | "signIn">;
  /** One-time link that signs in the first visitor of a demo. */
  link?: OneTimeLink | undefined;
}

/** Adds the console under /console, unless `console.mode` is `off`. */
export function mountConsole(server: FastifyInstance, parts: ConsoleDeps): void {
  const { console: wanted, listen } = parts.app.settings;
  if (wanted.mode === "off") return;
  if (wanted.mode === "open" && !isLoopbackHost(listen.host))
    throw invalidError("an open console needs a loopback listen.host; use login, or 127.0.0.1");
  const surface = new Console(parts);
  server.register(async (scope) => surface.register(scope), { prefix: "/console" });
  if (wanted.mode === "login") server.register(async (scope) => surface.registerCallback(scope));
}

class Console {
  private readonly app: ServiceApp;
  private readonly auth: ConsoleDeps["auth"];
  private readonly link: OneTimeLink | undefined;
  private readonly gate: RequestGuard;
  /** One per tenant, so that updates of one tenant do not reveal activity of another. */
  private readonly pulses = new Map<string | null, LiveUpdates>();
  private readonly shared: SharedPageState;
  private readonly tenantCounts = new WeakMap<ServiceApp, HourCounts>();

  constructor({ app, auth, link }: ConsoleDeps) {
    this.app = app;
    this.auth = auth;
    this.link = link;
    this.gate = new RequestGuard(app, auth);
    this.shared = { app, counts: new HourCounts(ledgerOf(app)), checkup: new LedgerVerification(app) };
  }

  /** Registers form parsing for the console only. The API keeps its strict body parser. */
  async register(scope: FastifyInstance): Promise<void> {
    scope.removeAllContentTypeParsers();
    await scope.register(formBodies);
    await scope.register(cookies);
    scope.addHook("onRequest", (request, reply) => this.gate.admit(request, reply));
    scope.addHook("onRequest", async (request, reply) => withoutSlash(request, reply));
    scope.addHook("preHandler", async (request) => {
      this.gate.checkForm(request);
      await this.gate.lookAgain(request);
    });
    scope.addHook("preClose", async () => {
      for (const pulse of this.pulses.values()) pulse.close();
    });
    scope.setErrorHandler((error, request, reply) => this.fail(error, request, reply));
    scope.setNotFoundHandler(async (request) => {
      if (this.gate.visit(request)?.principal == null) throw new SvcError("unauthenticated", "log in first");
      throw notFoundError("page not found");
    });
    assetRoutes(scope);
    this.loginRoutes(scope);
    scope.get("/events", (request, reply) => this.events(request, reply));
    for (const route of CONSOLE_ROUTES) {
      scope.route({
        method: route.method,
        url: route.path,
        handler: (request, reply) => this.answer(route, request, reply),
      });
    }
  }

  /** The address at which issuers of upstreams send the browser back. */
  async registerCallback(scope: FastifyInstance): Promise<void> {
    await scope.register(cookies);
    new ConsoleConnect(this.app, this.gate).registerCallback(scope);
  }

  private async answer(
    route: ConsoleRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { principal, token } = this.gate.visit(request)!;
    if (principal === null) return this.askToLogIn(request, reply);
    this.app.quotas?.admit(principal);
    // A background refresh must not consume the message meant for the user.
    const live = request.headers["x-svc-live"] !== undefined;
    const said = live ? null : this.gate.takeNotice(request, reply, token);
    const ctx = this.ctx(request, reply, principal);
    await admitForm(route, ctx);
    return this.send(await route.run(ctx), ctx, request, reply, said);
  }

  private ctx(request: FastifyRequest, reply: FastifyReply, principal: CallerPrincipal): PageContext {
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    return createPageContext({
      ...this.sharedWith(principal),
      mode: this.gate.mode,
      principal,
      csrf: this.gate.sessions.csrf(this.gate.visit(request)!.token),
      params: request.params as Record<string, string>,
      query: singleValueQuery(request.query),
      form: new SubmittedForm(request.body),
      signal: gone.signal,
    });
  }

  /** Shared state, limited to what this user is allowed to see. */
  private sharedWith(principal: CallerPrincipal): SharedPageState {
    const app = appFor(this.app, principal);
    if (app === this.app) return this.shared;
    let counts = this.tenantCounts.get(app);
    if (counts === undefined) {
      counts = new HourCounts(ledgerOf(app));
      this.tenantCounts.set(app, counts);
    }
    // Only users without a tenant see who verified the entire ledger and how long it was.
    return { app, counts, checkup: new LedgerVerification(app) };
  }

  private async send(
    answer: PageAnswer,
    ctx: PageContext,
    request: FastifyRequest,
    reply: FastifyReply,
    said: PageNotice | null,
  ): Promise<FastifyReply> {
    const visit = this.gate.visit(request)!;
    if ("to" in answer) {
      if (answer.notice !== undefined) this.gate.leaveNotice(reply, visit.token, answer.notice);
      return reply.redirect(answer.to, 303);
    }
    if ("content" in answer) return sendContent(reply, answer.content, answer.document ?? false);
    this.gate.keepToken(reply, visit);
    const page = framedPage(ctx, await loadHeaderStatus(ctx.app), answer.page, said);
    return sendHtml(reply, answer.status ?? 200, ctx.embedded.bytesOf(page));
  }

  private async events(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { principal, token } = this.gate.visit(request)!;
    if (principal === null) throw new SvcError("unauthenticated", "log in first");
    const tenant = tenantBinding(principal);
    const pulse = this.pulses.get(tenant) ?? new LiveUpdates(appFor(this.app, principal));
    this.pulses.set(tenant, pulse);
    const stream = pulse.open(async () => {
      const holder = await this.gate.holder(token);
      return holder !== null && tenantBinding(holder) === tenant;
    });
    if (stream === null) throw new SvcError("too_many", "too many pages are open on this server");
    reply.raw.once("close", () => stream.destroy());
    return reply.type("text/event-stream; charset=utf-8").header("x-accel-buffering", "no").send(stream);
  }

  private loginRoutes(scope: FastifyInstance): void {
    const { gate } = this;
    scope.get("/login", async (request, reply) => {
      const visit = gate.visit(request)!;
      const next = safeNext(singleValueQuery(request.query)["next"]);
      if (visit.principal !== null) return reply.redirect(next, 303);
      gate.keepToken(reply, visit);
      return sendHtml(reply, 200, this.loginPage(visit.token, next));
    });
    if (gate.mode === "login" && this.auth.signIn !== null)
      new ConsoleSignIn(this.app, gate, this.auth.signIn).register(scope);
    this.link?.register(scope, gate);
    if (gate.mode === "login") new ConsoleConnect(this.app, gate).register(scope);
    scope.post("/login", (request, reply) => this.logIn(request, reply));
    scope.post("/logout", async (request, reply) => {
      const { token, principal } = gate.visit(request)!;
      if (principal !== null)
        await endPushSession(this.app, principal, pushSession(gate.sessions.csrf(token)));
      await gate.sessions.end(token);
      gate.clearToken(reply);
      return reply.redirect("/console/login", 303);
    });
  }

  private async logIn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { gate } = this;
    if (gate.mode === "open") return reply.redirect("/console", 303);
    const form = new SubmittedForm(request.body);
    const next = safeNext(form.text("next"));
    try {
      gate.setToken(reply, await logIn(gate.sessions, this.auth, form.text("credential")));
      return reply.redirect(next, 303);
    } catch (error) {
      if (!(error instanceof SvcError) || !TOLD_AT_LOGIN.has(error.code)) throw error;
      const page = this.loginPage(gate.visit(request)!.token, next, loginProblem(error));
      return sendHtml(reply, pageFailureOf(error)!.status, page);
    }
  }

  private loginPage(token: string, next: string, problem?: string): HtmlFragment {
    const issuer = this.auth.signIn?.issuer ?? null;
    return loginPage({ csrf: this.gate.sessions.csrf(token), next, issuer, problem });
  }

  private askToLogIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const url = new URL(request.url, "http://console");
    if (isCrossSiteNavigation(request) && !url.searchParams.has("arrived")) {
      url.searchParams.set("arrived", "1");
      return sendHtml(reply, 200, arrivalPage(safeNext(url.pathname + url.search)));
    }
    const next = request.method === "GET" ? safeNext(request.url) : "/console";
    return reply.redirect(`/console/login?next=${encodeURIComponent(next)}`, 303);
  }

  private async fail(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const failure = pageFailureOf(error);
    const code = error instanceof SvcError ? error.cause_code : (failure?.code ?? INTERNAL_CODE);
    request.refused = { code, error: failure?.message ?? "internal error" };
    reply.header(ERROR_CODE_HEADER, code);
    if (failure === null || failure.status >= 500) {
      const route = request.routeOptions.url ?? "";
      this.app.log.warn("console request failed", { error: messageOf(error), route });
    }
    if (failure?.code === "unauthenticated") return this.askToLogIn(request, reply);
    const status = failure?.status ?? 500;
    if (failure?.retry_after !== undefined) reply.header("retry-after", failure.retry_after);
    const { title } = failureWords(failure);
    const principal = this.gate.visit(request)?.principal ?? null;
    const seen =
      principal === null ? null : await loadHeaderStatus(appFor(this.app, principal)).catch(() => null);
    if (principal === null || seen === null)
      return sendHtml(reply, status, barePage(title, failureBody(failure, "/console")));
    const page = { title, nav: null, body: failureBody(failure, backTo(request)) };
    return sendHtml(reply, status, framedPage(this.ctx(request, reply, principal), seen, page, null));
  }
}

const TOLD_AT_LOGIN: ReadonlySet<string> = new Set(["unauthenticated", "forbidden", "unavailable"]);

/** Redirects a URL with a trailing slash to the same URL without it. */
function withoutSlash(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  const [, path, query] = /^(\/console\/[^?]*[^/?])\/+(\?.*)?$/.exec(request.url) ?? [];
  if (path === undefined || request.method !== "GET") return undefined;
  return reply.redirect(path + (query ?? ""), 303);
}

/** Returns the console page that the form was on, from the `referer` header, or the overview. */
function backTo(request: FastifyRequest): string {
  const { referer } = request.headers;
  if (referer === undefined || !URL.canParse(referer)) return "/console";
  const { pathname, search } = new URL(referer);
  return safeNext(pathname + search);
}
