/**
 * Login page. The user pastes an API key or token, which is checked once and not stored, or signs in with the identity
 * provider.
 */
import type { AuthenticatedCaller, RequestAuthenticator } from "../../auth/authenticate.ts";
import { hasRole } from "../../govern/roles.ts";
import { forbiddenError, type SvcError } from "../../kernel/errors.ts";
import { capitalizeFirst } from "../../kernel/text/phrases.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { noticeBox } from "../parts/blocks.ts";
import { formElement, inputField, submitButton } from "../parts/forms.ts";
import { barePage } from "../shell.ts";
import type { ConsoleSessions } from "./session.ts";

const LOCAL_PATH = /^\/console(?:\/(?!\.{1,2}(?:[/?]|$))[\w.~%@:+-]+)*\/?(?:\?[\w.~%@:+&=*-]*)?$/;

/** Returns the URL if it is a page of this console, else `/console`. Prevents open redirects after login. */
export function safeNext(next: string | undefined): string {
  return next !== undefined && LOCAL_PATH.test(next) ? next : "/console";
}

interface LoginFacts {
  csrf: string;
  next: string;
  /** Identity provider to sign in with, or null if users paste a key. */
  issuer: string | null;
  problem: string | undefined;
}

export function loginPage({ csrf, next, issuer, problem }: LoginFacts): HtmlFragment {
  return barePage(
    "Log in",
    safeHtml`<h1>Log in</h1>`,
    problem === undefined ? emptyHtml : noticeBox("bad", safeHtml`<p>${problem}</p>`),
    issuer === null
      ? emptyHtml
      : safeHtml`<p><a class="button primary sign-in" href="/console/login/issuer?next=${encodeURIComponent(next)}">Sign in with ${issuer}</a></p>`,
    formElement(
      { csrf },
      { action: "/console/login", class: "login" },
      inputField({
        label: "API key or OIDC token",
        name: "credential",
        type: "password",
        required: true,
        hint: "A key of an auditor, approver, operator or admin. Agent keys do not work here.",
      }),
      safeHtml`<input type="hidden" name="next" value="${next}">`,
      submitButton("Log in", issuer === null ? "primary" : undefined),
    ),
    safeHtml`<p class="hint">The key or token is checked once and not stored. Your browser keeps only a random session cookie, which expires with the key or token, or after 12 hours.</p>`,
  );
}

/** Returns the new session's token, or throws an error to show on the login page. */
export async function logIn(
  sessions: ConsoleSessions,
  auth: Pick<RequestAuthenticator, "authenticateToken">,
  credential: string,
): Promise<string> {
  return beginSession(sessions, await auth.authenticateToken(credential));
}

/**
 * Starts a session after any kind of login. Rejects agent keys. `consents` admits a person whose agent needs consent:
 * the session opens nothing but the pages for that.
 */
export function beginSession(
  sessions: ConsoleSessions,
  found: AuthenticatedCaller,
  consents = false,
): Promise<string> {
  if (!hasRole(found.principal, "auditor") && !consents)
    throw forbiddenError("agent keys cannot use the console; log in with a user's key");
  return sessions.begin(found);
}

export function loginProblem(error: SvcError): string {
  if (error.code === "unauthenticated")
    return "This key or token is not valid. It may be mistyped, disabled or expired.";
  return `${capitalizeFirst(error.message)}.`;
}

/**
 * Page that continues to the console automatically. The browser does not send the strict cookie when the user arrives from
 * another site, but sends it with the request that this page makes.
 */
export function arrivalPage(to: string): HtmlFragment {
  return continuePage(to, "Continue to the console");
}

/** Page that continues to the URL automatically, and shows it as a link. */
export function continuePage(to: string, label: string): HtmlFragment {
  return safeHtml`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>svc</title><meta http-equiv="refresh" content="0;url=${to}"></head>
<body><main><p><a href="${to}">${label}</a></p></main><script src="/console/assets/arrive.js"></script></body></html>`;
}
