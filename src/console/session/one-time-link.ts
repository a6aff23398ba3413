/**
 * One-time link that the demo prints to sign in its first visitor. Opening the link shows a button and does not use it
 * up, since email and chat programs open links too. The button does: once, within ten minutes, on this machine.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AuthenticatedCaller } from "../../auth/authenticate.ts";
import { isExpired } from "../../govern/expiry.ts";
import { hasRole } from "../../govern/roles.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { forbiddenError } from "../../kernel/errors.ts";
import { sameSecret } from "../../kernel/hash.ts";
import { type HtmlFragment, safeHtml } from "../html.ts";
import { SubmittedForm, singleValueQuery } from "../page-context.ts";
import { formElement, submitButton } from "../parts/forms.ts";
import { sendHtml } from "../send.ts";
import { barePage } from "../shell.ts";
import { beginSession } from "./login.ts";
import type { RequestGuard } from "./request-guard.ts";
import { isLocalHost } from "./request-source.ts";

const LINK_MS = 600_000;
const PATH = "/console/login/link";

export class OneTimeLink {
  private readonly env: RuntimeEnv;
  private readonly person: AuthenticatedCaller;
  private readonly token: string;
  readonly expires_ms: number;
  private consumed = false;

  constructor(env: RuntimeEnv, person: AuthenticatedCaller) {
    if (hasRole(person.principal, "admin")) throw forbiddenError("a one-time link cannot sign in an admin");
    this.env = env;
    this.person = person;
    this.token = Buffer.from(env.bytes(32)).toString("base64url");
    this.expires_ms = env.now() + LINK_MS;
  }

  get path(): string {
    return `${PATH}?token=${this.token}`;
  }

  register(scope: FastifyInstance, gate: RequestGuard): void {
    scope.get("/login/link", async (request, reply) => {
      // This URL holds the token. Do not send it to the next page.
      reply.header("referrer-policy", "no-referrer");
      const token = singleValueQuery(request.query)["token"] ?? "";
      const problem = this.problem(request, token);
      if (problem !== null) return sendHtml(reply, 403, deadLinkPage(problem));
      const visit = gate.visit(request)!;
      gate.keepToken(reply, visit);
      return sendHtml(reply, 200, this.page(gate.sessions.csrf(visit.token), token));
    });
    scope.post("/login/link", (request, reply) => this.consume(request, reply, gate));
  }

  private async consume(
    request: FastifyRequest,
    reply: FastifyReply,
    gate: RequestGuard,
  ): Promise<FastifyReply> {
    const problem = this.problem(request, new SubmittedForm(request.body).text("token"));
    if (problem !== null) return sendHtml(reply, 403, deadLinkPage(problem));
    this.consumed = true;
    gate.setToken(reply, await beginSession(gate.sessions, this.person));
    return reply.redirect("/console", 303);
  }

  /** Reason why the link is not usable, or null if it is. */
  private problem({ headers: { host = "" } }: FastifyRequest, given: string): string | null {
    if (!isLocalHost(host)) return "This link only works on the machine that runs the demo.";
    if (!sameSecret(this.token, given)) return "This is not the link that the running demo printed.";
    if (this.consumed) return "This link was already used. It works only once.";
    return isExpired(this, this.env.now()) ? "This link has expired. It is valid for ten minutes." : null;
  }

  private page(csrf: string, token: string): HtmlFragment {
    const { name } = this.person.principal;
    return barePage(
      "Welcome",
      safeHtml`<h1>Welcome to the demo</h1><p>You will be signed in as <b>${name}</b>, who can decide requests and roll back runs.</p>`,
      formElement(
        { csrf },
        { action: PATH, class: "login" },
        safeHtml`<input type="hidden" name="token" value="${token}">`,
        submitButton("Open the console", "primary"),
      ),
      safeHtml`<p class="hint">This link works only once.</p>`,
    );
  }
}

function deadLinkPage(problem: string): HtmlFragment {
  return barePage(
    "Link not valid",
    safeHtml`<h1>This link does not log you in</h1><p>${problem}</p>`,
    safeHtml`<p>To get a new link, restart the demo. You can also log in with one of the keys that the demo printed.</p>`,
    safeHtml`<p><a class="button primary" href="/console/login">Log in with a key</a></p>`,
  );
}
