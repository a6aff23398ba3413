/**
 * The console on an HTTP server. Every request passes the same gates in the same order: where it comes from,
 * whose session it is, whether a form belongs to that session; only then does a page or a form get to run.
 */
import cookies from "@fastify/cookie";
import formBodies from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { App } from "../app/app.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import { isLoopbackHost } from "../config/loopback.ts";
import { forbidden, invalid, messageOf, notFound, SvcError } from "../kernel/errors.ts";
import type { Principal } from "../model/roles.ts";
import { assetRoutes } from "./assets/index.ts";
import { LedgerCheckup } from "./checkup.ts";
import { type Answer, type ConsoleRoute, createCtx, Form, type Shared } from "./ctx.ts";
import { type Failure, failureBody, failureOf, failureWords } from "./errors.ts";
import { glance } from "./glance.ts";
import { isArrival, judgeOpen, judgePost, type Source } from "./guard.ts";
import { HourCounts } from "./hour-counts.ts";
import { html } from "./html.ts";
import { arrivalPage, logIn, loginPage, loginProblem, safeNext } from "./login.ts";
import { Pulse } from "./pulse.ts";
import { ROUTES } from "./routes.ts";
import { secure, sendContent, sendHtml } from "./send.ts";
import { localPerson, type Notice, SESSION_MS, Sessions } from "./session.ts";
import { bare, shell } from "./shell.ts";

export interface ConsoleParts {
  app: App;
  auth: Pick<Authenticator, "authenticateToken" | "holderOf">;
}

/** What is known of a request once it has passed the gates. */
interface Visit {
  token: string;
  /** The browser does not have the token yet. */
  fresh: boolean;
  principal: Principal | null;
}

/** Adds the console under /console, unless the settings say off. */
export function mountConsole(server: FastifyInstance, parts: ConsoleParts): void {
  const { console: wanted, listen } = parts.app.settings;
  if (wanted.mode === "off") return;
  if (wanted.mode === "open" && !isLoopbackHost(listen.host))
    throw invalid("an open console needs a loopback listen.host; use login, or 127.0.0.1");
  const surface = new Console(parts);
  server.register(async (scope) => surface.register(scope), { prefix: "/console" });
}

class Console {
  private readonly app: App;
  private readonly auth: ConsoleParts["auth"];
  private readonly mode: "open" | "login";
  private readonly sessions: Sessions;
  private readonly pulse: Pulse;
  private readonly shared: Shared;
  private readonly visits = new WeakMap<FastifyRequest, Visit>();
  private readonly flash: string;

  constructor({ app, auth }: ConsoleParts) {
    this.app = app;
    this.auth = auth;
    this.mode = app.settings.console.mode === "open" ? "open" : "login";
    this.sessions = new Sessions(app.core, auth);
    this.pulse = new Pulse(app);
    this.shared = { app, counts: new HourCounts(app.core.store), checkup: new LedgerCheckup(app) };
    this.flash = `${this.sessions.cookie}_said`;
  }

  async register(scope: FastifyInstance): Promise<void> {
    scope.removeAllContentTypeParsers();
    await scope.register(formBodies);
    await scope.register(cookies);
    scope.addHook("onRequest", (request, reply) => this.admit(request, reply));
    scope.addHook("preHandler", async (request) => this.checkForm(request));
    scope.addHook("preClose", async () => this.pulse.close());
    scope.setErrorHandler((error, request, reply) => this.fail(error, request, reply));
    scope.setNotFoundHandler(async (request) => {
      if (this.visits.get(request)?.principal == null) throw new SvcError("unauthenticated", "log in first");
      throw notFound("there is no such page");
    });
    assetRoutes(scope);
    this.loginRoutes(scope);
    scope.get("/events", (request, reply) => this.events(request, reply));
    for (const route of ROUTES) {
      scope.route({
        method: route.method,
        url: route.path,
        handler: (request, reply) => this.answer(route, request, reply),
      });
    }
  }

  private async admit(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    secure(reply);
    const source: Source = this.mode === "open" ? judgeOpen(request) : this.judgeWithLogin(request);
    if (source !== "own") return this.refuse(request, reply, source);
    const known = this.sessions.readToken(request.cookies[this.sessions.cookie]);
    if (known === undefined && request.method === "POST") throw noForm();
    const token = known ?? this.sessions.newToken();
    const principal =
      this.mode === "open"
        ? localPerson(this.app.settings.console.role)
        : known === undefined
          ? null
          : ((await this.sessions.holder(known)) ?? null);
    request.principal = principal;
    this.visits.set(request, { token, fresh: known === undefined, principal });
    return undefined;
  }

  private judgeWithLogin(request: FastifyRequest): Source {
    return request.method === "POST" ? judgePost(request, this.app.settings.console_url) : "own";
  }

  /** A link from elsewhere into an open console is not followed, but the reader may walk in from here. */
  private refuse(request: FastifyRequest, reply: FastifyReply, source: Source): FastifyReply {
    const words =
      source === "foreign_host"
        ? html`<p>This console answers only at <code>localhost</code> or <code>127.0.0.1</code>, with its own port.</p>`
        : isArrival(request)
          ? html`<p>You followed a link from another site. This console asks for no login, so it opens only from its own pages.</p><p><a class="button primary" href="${safeNext(request.url)}">Open the console</a></p>`
          : html`<p>This request did not come from one of the console's own pages, so it was not carried out.</p>`;
    return sendHtml(reply, 403, bare("Refused", html`<h1>Refused</h1>`, words));
  }

  private checkForm(request: FastifyRequest): void {
    if (request.method !== "POST") return;
    const given = new Form(request.body).text("csrf");
    const visit = this.visits.get(request);
    if (visit === undefined || !this.sessions.isCsrf(visit.token, given)) throw noForm();
  }

  private async answer(
    route: ConsoleRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const visit = this.visits.get(request)!;
    if (visit.principal === null) return this.askToLogIn(request, reply);
    const live = request.headers["x-svc-live"] !== undefined;
    const said = live ? null : this.takeNotice(request, reply, visit.token);
    return this.send(await route.run(this.ctx(request, reply, visit.principal)), request, reply, said);
  }

  private ctx(request: FastifyRequest, reply: FastifyReply, principal: Principal) {
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    return createCtx({
      ...this.shared,
      mode: this.mode,
      principal,
      csrf: this.sessions.csrf(this.visits.get(request)!.token),
      params: request.params as Record<string, string>,
      query: plainQuery(request.query),
      form: new Form(request.body),
      signal: gone.signal,
    });
  }

  private async send(
    answer: Answer,
    request: FastifyRequest,
    reply: FastifyReply,
    said: Notice | null,
  ): Promise<FastifyReply> {
    const visit = this.visits.get(request)!;
    if ("to" in answer) {
      if (answer.notice !== undefined)
        reply.setCookie(this.flash, this.sessions.sealNotice(visit.token, answer.notice), {
          ...this.cookieOptions(),
          maxAge: 60,
        });
      return reply.redirect(answer.to, 303);
    }
    if ("content" in answer) return sendContent(reply, answer.content, answer.document ?? false);
    this.keepToken(reply, visit);
    const ctx = this.ctx(request, reply, visit.principal!);
    const seen = await glance(this.app);
    return sendHtml(reply, answer.status ?? 200, shell(ctx, seen, answer.page, answer.notice ?? said));
  }

  private async events(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { principal, token } = this.visits.get(request)!;
    if (principal === null) throw new SvcError("unauthenticated", "log in first");
    const alive = async () => this.mode === "open" || (await this.sessions.holder(token)) !== undefined;
    const stream = this.pulse.open(alive);
    if (stream === null) throw new SvcError("too_many", "too many pages are open on this server");
    reply.raw.once("close", () => stream.destroy());
    return reply.type("text/event-stream; charset=utf-8").header("x-accel-buffering", "no").send(stream);
  }

  private loginRoutes(scope: FastifyInstance): void {
    scope.get("/login", async (request, reply) => {
      const visit = this.visits.get(request)!;
      const next = safeNext(plainQuery(request.query)["next"]);
      if (visit.principal !== null) return reply.redirect(next, 303);
      this.keepToken(reply, visit);
      return sendHtml(reply, 200, loginPage(this.sessions.csrf(visit.token), next));
    });
    scope.post("/login", async (request, reply) => {
      if (this.mode === "open") return reply.redirect("/console", 303);
      const form = new Form(request.body);
      const next = safeNext(form.text("next"));
      try {
        const token = await logIn(this.sessions, this.auth, form.text("credential"));
        this.setToken(reply, token);
        return reply.redirect(next, 303);
      } catch (error) {
        if (
          !(error instanceof SvcError) ||
          !["unauthenticated", "forbidden", "unavailable"].includes(error.code)
        )
          throw error;
        const page = loginPage(
          this.sessions.csrf(this.visits.get(request)!.token),
          next,
          loginProblem(error),
        );
        return sendHtml(reply, failureOf(error)!.status, page);
      }
    });
    scope.post("/logout", async (request, reply) => {
      await this.sessions.end(this.visits.get(request)!.token);
      reply.clearCookie(this.sessions.cookie, this.cookieOptions());
      return reply.redirect("/console/login", 303);
    });
  }

  private askToLogIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const url = new URL(request.url, "http://console");
    if (isArrival(request) && !url.searchParams.has("arrived")) {
      url.searchParams.set("arrived", "1");
      return sendHtml(reply, 200, arrivalPage(safeNext(url.pathname + url.search)));
    }
    const next = request.method === "GET" ? safeNext(request.url) : "/console";
    return reply.redirect(`/console/login?next=${encodeURIComponent(next)}`, 303);
  }

  private async fail(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const failure = failureOf(error);
    if (failure === null || failure.status >= 500)
      this.app.log.warn("console request failed", {
        error: messageOf(error),
        route: request.routeOptions.url ?? "",
      });
    const visit = this.visits.get(request);
    if (failure?.code === "unauthenticated") return this.askToLogIn(request, reply);
    const status = failure?.status ?? 500;
    const seen = visit?.principal == null ? null : await glance(this.app).catch(() => null);
    if (seen === null) return sendHtml(reply, status, bareFailure(failure));
    const ctx = this.ctx(request, reply, visit!.principal!);
    const page = {
      title: failureWords(failure).title,
      nav: null,
      body: failureBody(failure, backTo(request)),
    };
    return sendHtml(reply, status, shell(ctx, seen, page, null));
  }

  private takeNotice(request: FastifyRequest, reply: FastifyReply, token: string): Notice | null {
    const value = request.cookies[this.flash];
    if (value === undefined || request.method !== "GET") return null;
    reply.clearCookie(this.flash, this.cookieOptions());
    return this.sessions.openNotice(token, value);
  }

  private keepToken(reply: FastifyReply, { token, fresh }: Visit): void {
    if (fresh) this.setToken(reply, token);
  }

  private setToken(reply: FastifyReply, token: string): void {
    reply.setCookie(this.sessions.cookie, token, { ...this.cookieOptions(), maxAge: SESSION_MS / 1_000 });
  }

  private cookieOptions() {
    return {
      path: "/console",
      httpOnly: true,
      sameSite: "strict" as const,
      secure: this.app.settings.secure_cookies,
    };
  }
}

const noForm = () =>
  forbidden("this form does not belong to your session (its CSRF field is missing or of another session)");

function bareFailure(failure: Failure | null) {
  return bare(failureWords(failure).title, failureBody(failure, "/console"));
}

/** One value a name, and none for a field that was left empty. */
function plainQuery(query: unknown): Record<string, string> {
  const entries = Object.entries(query as Record<string, unknown>);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== ""),
  );
}

/** The page that a form stood on, if its browser says so and it is one of ours. */
function backTo(request: FastifyRequest): string {
  const { referer } = request.headers;
  if (referer === undefined || !URL.canParse(referer)) return "/console";
  const { pathname, search } = new URL(referer);
  return safeNext(pathname + search);
}
