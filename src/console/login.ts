/** The login page: an API key or a token is pasted, looked at once, and not kept; or the issuer says who it is. */

import type { Authenticated, Authenticator } from "../auth/authenticate.ts";
import { forbidden, type SvcError } from "../kernel/errors.ts";
import { sentence } from "../kernel/words.ts";
import { hasRole } from "../model/roles.ts";
import { type Html, html, nothing } from "./html.ts";
import { notice } from "./parts/blocks.ts";
import { button, form, input } from "./parts/forms.ts";
import type { ConsoleSessions } from "./session.ts";
import { bare } from "./shell.ts";

const LOCAL_PATH = /^\/console(?:\/(?!\.{1,2}(?:[/?]|$))[\w.~%@:+-]+)*\/?(?:\?[\w.~%@:+&=*-]*)?$/;

/** Only a page of this console may come after the login. */
export function safeNext(next: string | undefined): string {
  return next !== undefined && LOCAL_PATH.test(next) ? next : "/console";
}

interface LoginFacts {
  csrf: string;
  next: string;
  /** Where people may sign in instead; null where they paste. */
  issuer: string | null;
  problem: string | undefined;
}

export function loginPage({ csrf, next, issuer, problem }: LoginFacts): Html {
  return bare(
    "Log in",
    html`<h1>Log in</h1>`,
    problem === undefined ? nothing : notice("bad", html`<p>${problem}</p>`),
    issuer === null
      ? nothing
      : html`<p><a class="button primary sign-in" href="/console/login/issuer?next=${encodeURIComponent(next)}">Sign in with ${issuer}</a></p>`,
    form(
      { csrf },
      { action: "/console/login", class: "login" },
      input({
        label: "API key or OIDC token",
        name: "credential",
        type: "password",
        required: true,
        hint: "Of a person: auditor, approver, operator or admin. Agent keys stay with their agents.",
      }),
      html`<input type="hidden" name="next" value="${next}">`,
      button("Log in", issuer === null ? "primary" : undefined),
    ),
    html`<p class="hint">It is checked, then forgotten: your browser keeps only a random session cookie, which ends with the key, with the token, or after twelve hours.</p>`,
  );
}

/** Answers the new session's token, or throws with what to tell the person. */
export async function logIn(
  sessions: ConsoleSessions,
  auth: Pick<Authenticator, "authenticateToken">,
  credential: string,
): Promise<string> {
  return beginSession(sessions, await auth.authenticateToken(credential));
}

/** The console is for people, however they showed who they are. */
export function beginSession(sessions: ConsoleSessions, found: Authenticated): Promise<string> {
  if (!hasRole(found.principal, "auditor"))
    throw forbidden("agent keys cannot use the console; log in with the key of a person");
  return sessions.begin(found);
}

export function loginProblem(error: SvcError): string {
  if (error.code === "unauthenticated")
    return "That key or token is not valid here. It may be mistyped, disabled or expired.";
  return `${sentence(error.message)}.`;
}

/** Reached from another site: the strict cookie was not sent, and is sent once the reader comes from here. */
export function arrivalPage(to: string): Html {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>svc</title><meta http-equiv="refresh" content="0;url=${to}"></head>
<body><main><p><a href="${to}">Continue to the console</a></p></main><script src="/console/assets/arrive.js"></script></body></html>`;
}
