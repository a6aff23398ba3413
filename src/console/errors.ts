/** Error pages: a title, the problem, and a hint on what to do next. */
import { ERROR_KINDS, type ErrorCode, messageOf, retryAfter, SvcError } from "../kernel/errors.ts";
import { capitalizeFirst } from "../kernel/text/phrases.ts";
import { IndeterminateCommitError } from "../store/indeterminate-commit.ts";
import { type HtmlFragment, safeHtml } from "./html.ts";
import { noticeBox, pageHead } from "./parts/blocks.ts";

interface Words {
  title: string;
  hint: string;
}

const WORDS: Record<ErrorCode, Words> = {
  invalid: {
    title: "This request is not valid",
    hint: "Correct the value that the message names, and try again.",
  },
  unauthenticated: { title: "You are not logged in", hint: "Log in and try again." },
  forbidden: {
    title: "You don't have permission to do this",
    hint: "Ask someone with that role, or sign in with another key. Nothing was changed.",
  },
  not_found: {
    title: "Not found",
    hint: "Retention may have deleted it, or the URL may be mistyped.",
  },
  not_enabled: {
    title: "Not enabled on this server",
    hint: "The message names the setting that enables it.",
  },
  conflict: {
    title: "Something has changed since",
    hint: "Reload the page: someone else may have acted first. Your request changed nothing.",
  },
  too_large: { title: "The request is too large", hint: "A request can be at most 1 MB." },
  unsupported_media: { title: "This form cannot be read", hint: "Submit it from its page." },
  too_many: { title: "Too many requests", hint: "Wait a moment and try again." },
  delivery_failed: {
    title: "Delivery failed",
    hint: "The destination rejected the request or did not respond. Check the destination and the egress rules, then try again.",
  },
  unavailable: {
    title: "The service is not available right now",
    hint: "Nothing was recorded and nothing was done. Try again in a moment. The server log has the cause.",
  },
  corrupt: {
    title: "The store is damaged",
    hint: "Nothing was done. Verify the ledger with svc verify first, and check the server log.",
  },
};
const MAY_BE_DONE: Words = {
  title: "The outcome is unknown",
  hint: "The request may have been recorded. Check before you send it again. The server log has the cause.",
};
const UNEXPECTED: Words = {
  title: "Something went wrong",
  hint: "The server log has the cause.",
};

interface PageFailure {
  status: number;
  code: ErrorCode | null;
  message: string;
  extra: Record<string, unknown> | undefined;
  /** The store could not determine in time whether the request was recorded. */
  may_be_found?: boolean;
  /** In seconds, for status 429. */
  retry_after?: number | undefined;
}

const FASTIFY: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "invalid",
};

/** Returns null for unexpected errors. The caller logs those and shows the user no details. */
export function pageFailureOf(error: unknown): PageFailure | null {
  if (error instanceof SvcError)
    return {
      status: ERROR_KINDS[error.code].http,
      code: error.code,
      message: error.message,
      extra: error.extra,
      may_be_found: error instanceof IndeterminateCommitError,
      retry_after: retryAfter(error),
    };
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  const known = code === undefined ? undefined : FASTIFY[code];
  if (known !== undefined)
    return { status: ERROR_KINDS[known].http, code: known, message: messageOf(error), extra: undefined };
  return statusCode === 400
    ? { status: 400, code: "invalid", message: "the request could not be read", extra: undefined }
    : null;
}

export function failureWords(failure: PageFailure | null): Words {
  if (failure?.may_be_found) return MAY_BE_DONE;
  return failure?.code == null ? UNEXPECTED : WORDS[failure.code];
}

export function failureBody(failure: PageFailure | null, back: string): HtmlFragment {
  const { title, hint } = failureWords(failure);
  return safeHtml`${pageHead(title)}
${noticeBox("bad", safeHtml`<p class="said">${capitalizeFirst(failure?.message ?? "The request failed.")}</p>`)}
<p>${hint}</p><p class="actions"><a class="button" href="${back}">Back</a> <a class="button" href="/console">Overview</a></p>`;
}
