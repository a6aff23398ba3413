/** Operations performed by a server somewhere else: the same input, the same answer, the same errors. */
import type { z } from "zod";
import type { Operation } from "../app/door/operation.ts";
import { createEgress } from "../egress/egress.ts";
import { isCauseCode } from "../kernel/error-codes.ts";
import { ERRORS, type ErrorCode, invalid, SvcError, TooMany } from "../kernel/errors.ts";
import { parseJsonBytes } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { largestAnswer, readAnswer } from "./read-answer.ts";
import { ERROR_CODE_HEADER, FACTS_HEADER, REPLAYED_HEADER } from "./row.ts";
import { rowOf } from "./table.ts";
import { writeRequest } from "./write-request.ts";

export interface ClientOptions {
  url: string;
  key: string;
  timeout_ms?: number | undefined;
}

export interface Client {
  perform<I extends z.ZodType, O>(
    op: Operation<I, O>,
    input: z.input<I>,
    signal?: AbortSignal | undefined,
    /** Told when the answer is one that was given before. */
    replayed?: () => void,
  ): Promise<O>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 30_000;

export function createClient({ url, key, timeout_ms = TIMEOUT_MS }: ClientOptions): Client {
  const base = url.replace(/\/+$/, "");
  // The caller chose this server; only the rules that always hold apply to it.
  const egress = createEgress({ block_private: false }, {});
  return {
    async perform<I extends z.ZodType, O>(
      op: Operation<I, O>,
      input: z.input<I>,
      signal?: AbortSignal,
      replayed?: () => void,
    ) {
      const row = rowOf(op);
      if (row === undefined)
        throw invalid("a server does not offer this: run it on the server's machine, with -d <dir>");
      const { method, path, headers, body } = writeRequest(row, input as object);
      const response = await egress.request(base + path, {
        method,
        timeout_ms,
        follow_redirects: false,
        max_bytes: largestAnswer(op),
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
      if (response.status >= 400) throw refusal(response.status, response.headers, response.body);
      const answer = readAnswer(op, base, response) as O;
      if (response.headers[REPLAYED_HEADER] === "true") replayed?.();
      return answer;
    },
    close: () => egress.close(),
  };
}

/** The server's own words and facts, under the code that its status stands for. */
function refusal(status: number, headers: Readonly<Record<string, string>>, bytes: Uint8Array): SvcError {
  const found = (Object.keys(ERRORS) as ErrorCode[]).find((code) => ERRORS[code].http === status);
  const code = found ?? (status >= 500 ? "unavailable" : "invalid");
  try {
    const { error, ...listed } = parseJsonBytes(bytes) as Record<string, unknown>;
    const facts = JSON.parse(decodeURIComponent(headers[FACTS_HEADER] ?? "{}"));
    if (typeof error === "string") {
      const message = error.slice(0, LIMITS.error_read_chars);
      if (code === "too_many") return new TooMany(message, askAgainIn(headers));
      return new SvcError(code, message, { cause_code: causeIn(headers), extra: { ...listed, ...facts } });
    }
  } catch {
    // Not one of ours; a proxy's page, perhaps.
  }
  return new SvcError(code, `the server answered with status ${status}`);
}

/** A proxy may give a date in place of seconds; whoever comes too early is told again. */
function askAgainIn({ "retry-after": told = "" }: Readonly<Record<string, string>>): number {
  const seconds = Number(told);
  return seconds > 0 ? seconds : 1;
}

/** Undefined where an older or a newer server names none that is known here. */
function causeIn({ [ERROR_CODE_HEADER]: named = "" }: Readonly<Record<string, string>>) {
  return isCauseCode(named) ? named : undefined;
}
