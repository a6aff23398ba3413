/**
 * A printed link that logs the newcomer to a demo in. Opening it shows a button and spends nothing, since mail
 * programs and chats open links, too; the button's form spends it, once, within ten minutes, on this machine.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Authenticated } from "../auth/authenticate.ts";
import type { Env } from "../kernel/env.ts";
import { forbidden } from "../kernel/errors.ts";
import { sameSecret } from "../kernel/hash.ts";
import { hasRole } from "../model/roles.ts";
import { Form, plainQuery } from "./ctx.ts";
import type { Gate } from "./gate.ts";
import { isLocalHost } from "./guard.ts";
import { type Html, html } from "./html.ts";
import { beginSession } from "./login.ts";
import { button, form } from "./parts/forms.ts";
import { sendHtml } from "./send.ts";
import { bare } from "./shell.ts";

const LINK_MS = 600_000;
const PATH = "/console/login/link";

export class OneTimeLink {
  private readonly env: Env;
  private readonly person: Authenticated;
  private readonly token: string;
  private readonly expires_ms: number;
  private spent = false;

  constructor(env: Env, person: Authenticated) {
    if (hasRole(person.principal, "admin")) throw forbidden("a link never logs an admin in");
    this.env = env;
    this.person = person;
    this.token = Buffer.from(env.bytes(32)).toString("base64url");
    this.expires_ms = env.now() + LINK_MS;
  }

  get path(): string {
    return `${PATH}?token=${this.token}`;
  }

  register(scope: FastifyInstance, gate: Gate): void {
    scope.get("/login/link", async (request, reply) => {
      // The address holds the token; the next page has no business with it.
      reply.header("referrer-policy", "no-referrer");
      const token = plainQuery(request.query)["token"] ?? "";
      const problem = this.problem(request, token);
      if (problem !== null) return sendHtml(reply, 403, deadLinkPage(problem));
      const visit = gate.visit(request)!;
      gate.keepToken(reply, visit);
      return sendHtml(reply, 200, this.page(gate.sessions.csrf(visit.token), token));
    });
    scope.post("/login/link", (request, reply) => this.spend(request, reply, gate));
  }

  private async spend(request: FastifyRequest, reply: FastifyReply, gate: Gate): Promise<FastifyReply> {
    const problem = this.problem(request, new Form(request.body).text("token"));
    if (problem !== null) return sendHtml(reply, 403, deadLinkPage(problem));
    this.spent = true;
    gate.setToken(reply, await beginSession(gate.sessions, this.person));
    return reply.redirect("/console", 303);
  }

  /** The reason why the link does not log a person in; null while it does. */
  private problem({ headers: { host = "" } }: FastifyRequest, given: string): string | null {
    if (!isLocalHost(host)) return "This link opens only on the machine on which the demo runs.";
    if (!sameSecret(this.token, given)) return "This is not the link that the running demo printed.";
    if (this.spent) return "This link was used already. It works once.";
    return this.env.now() >= this.expires_ms ? "This link has expired. It works for ten minutes." : null;
  }

  private page(csrf: string, token: string): Html {
    const { name } = this.person.principal;
    return bare(
      "Welcome",
      html`<h1>Welcome to the demo</h1><p>You come in as <b>${name}</b>, who decides requests and takes runs back.</p>`,
      form(
        { csrf },
        { action: PATH, class: "login" },
        html`<input type="hidden" name="token" value="${token}">`,
        button("Open the console", "primary"),
      ),
      html`<p class="hint">This link works once.</p>`,
    );
  }
}

function deadLinkPage(problem: string): Html {
  return bare(
    "Link not valid",
    html`<h1>This link does not log you in</h1><p>${problem}</p>`,
    html`<p>For another link, stop the demo and start it again: it prints a new one. Or log in with a key that the demo printed.</p>`,
    html`<p><a class="button primary" href="/console/login">Log in with a key</a></p>`,
  );
}
