/** What a person is told when something did not work: what happened, and what to do about it. */

import { ERRORS, type ErrorCode, messageOf, retryAfter, SvcError } from "../kernel/errors.ts";
import { sentence } from "../kernel/words.ts";
import { MayBeFound } from "../store/may-be-found.ts";
import { type Html, html } from "./html.ts";
import { notice, pageHead } from "./parts/blocks.ts";

interface Words {
  title: string;
  hint: string;
}

const WORDS: Record<ErrorCode, Words> = {
  invalid: {
    title: "That cannot be done as asked",
    hint: "Go back, correct what the message names, and send it again.",
  },
  unauthenticated: { title: "You are not logged in", hint: "Log in and try again." },
  forbidden: {
    title: "That is not yours to do",
    hint: "Somebody with that role can do it, or you can log in with another key. Nothing was changed.",
  },
  not_found: {
    title: "That is not here",
    hint: "It may have been deleted by retention, or the address is mistyped.",
  },
  not_enabled: { title: "That is not enabled here", hint: "The message says which setting turns it on." },
  conflict: {
    title: "Something changed meanwhile",
    hint: "Look at the page again: somebody else may have been faster. Nothing was changed by you.",
  },
  too_large: { title: "That is too much at once", hint: "A request may be one megabyte at most." },
  unsupported_media: { title: "That form cannot be read", hint: "Send it from the page itself." },
  too_many: { title: "Too many at once", hint: "Wait a moment and try again." },
  delivery_failed: {
    title: "It could not be delivered",
    hint: "The other side refused or did not answer. Check the destination and the egress rules, then try again.",
  },
  unavailable: {
    title: "The service cannot do that now",
    hint: "Nothing was recorded, so nothing was done. Try again in a moment; the server's log has the cause.",
  },
  corrupt: {
    title: "The store is damaged",
    hint: "Nothing was done. Verify the ledger (svc verify) before anything else, and see the server's log.",
  },
};
const MAY_BE_DONE: Words = {
  title: "It is not known whether that was done",
  hint: "It may have been recorded all the same. Look at the page again before you send it once more; the server's log has the cause.",
};
const UNEXPECTED: Words = {
  title: "Something went wrong here",
  hint: "Nothing more is known on this page; the server's log has the cause.",
};

interface PageFailure {
  status: number;
  code: ErrorCode | null;
  message: string;
  extra: Record<string, unknown> | undefined;
  /** The store could not find out in time whether it was recorded. */
  may_be_found?: boolean;
  /** In seconds, for a 429. */
  retry_after?: number | undefined;
}

const FASTIFY: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "invalid",
};

/** Null for what was not expected: that goes to the log, and the person is told no details. */
export function pageFailureOf(error: unknown): PageFailure | null {
  if (error instanceof SvcError)
    return {
      status: ERRORS[error.code].http,
      code: error.code,
      message: error.message,
      extra: error.extra,
      may_be_found: error instanceof MayBeFound,
      retry_after: retryAfter(error),
    };
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  const known = code === undefined ? undefined : FASTIFY[code];
  if (known !== undefined)
    return { status: ERRORS[known].http, code: known, message: messageOf(error), extra: undefined };
  return statusCode === 400
    ? { status: 400, code: "invalid", message: "the request could not be read", extra: undefined }
    : null;
}

export function failureWords(failure: PageFailure | null): Words {
  if (failure?.may_be_found) return MAY_BE_DONE;
  return failure?.code == null ? UNEXPECTED : WORDS[failure.code];
}

export function failureBody(failure: PageFailure | null, back: string): Html {
  const { title, hint } = failureWords(failure);
  return html`${pageHead(title)}
${notice("bad", html`<p class="said">${sentence(failure?.message ?? "The request failed.")}</p>`)}
<p>${hint}</p><p class="actions"><a class="button" href="${back}">Back</a> <a class="button" href="/console">Overview</a></p>`;
}
