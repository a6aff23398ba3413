/** Client that runs operations on a server, with the same input, answer and errors as the local call. */
import type { z } from "zod";
import { createEgress } from "../../egress/egress.ts";
import { isCauseCode } from "../../kernel/error-codes.ts";
import { ERROR_KINDS, type ErrorCode, invalidError, SvcError, TooManyError } from "../../kernel/errors.ts";
import { parseJsonBytes } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { ServiceOperation } from "../../operations/pipeline/operation.ts";
import { ERROR_CODE_HEADER, FACTS_HEADER, REPLAYED_HEADER } from "./http-row.ts";
import { rowOf } from "./http-table.ts";
import { answerSizeLimit, assertShape, readAnswer } from "./read-answer.ts";
import { StreamClient } from "./stream-client.ts";
import { writeMessage, writeRequest } from "./write-request.ts";

export interface OperationsClientOptions {
  url: string;
  key: string;
  timeout_ms?: number | undefined;
  /** Sends requests over one connection where the server offers it. For clients that send many. */
  stream?: boolean | undefined;
}

export interface OperationsClient {
  perform<I extends z.ZodType, O>(
    op: ServiceOperation<I, O>,
    input: z.input<I>,
    signal?: AbortSignal | undefined,
    /** Called if the answer is a replay of an earlier one. */
    replayed?: () => void,
  ): Promise<O>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 30_000;

export function createOperationsClient({
  url,
  key,
  timeout_ms = TIMEOUT_MS,
  stream = false,
}: OperationsClientOptions): OperationsClient {
  const base = url.replace(/(?<!\/)\/+$/, "");
  // The caller chose this server, so only the egress rules that always apply are checked.
  const egress = createEgress({ block_private: false }, {});
  const streamed = stream ? new StreamClient({ url: base, key, egress }) : null;
  return {
    async perform<I extends z.ZodType, O>(
      op: ServiceOperation<I, O>,
      input: z.input<I>,
      signal?: AbortSignal,
      replayed?: () => void,
    ) {
      const row = rowOf(op);
      if (row === undefined)
        throw invalidError(
          "servers do not offer this operation; run it on the server's machine with -d <dir>",
        );
      const message = streamed === null ? null : writeMessage(row, input as object);
      const told = message === null ? null : await streamed!.ask(message, { timeout_ms, signal });
      if (told !== null) {
        if (told.status >= 400) throw refusal(told.status, told.headers, told.body);
        assertShape(op.output as z.ZodType, base, told.body);
        if (told.headers[REPLAYED_HEADER] === "true") replayed?.();
        return told.body as O;
      }
      const { method, path, headers, body } = writeRequest(row, input as object);
      const response = await egress.request(base + path, {
        method,
        timeout_ms,
        follow_redirects: false,
        max_bytes: answerSizeLimit(op),
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
      if (response.status >= 400) throw refusal(response.status, response.headers, parseError(response.body));
      const answer = readAnswer(op, base, response) as O;
      if (response.headers[REPLAYED_HEADER] === "true") replayed?.();
      return answer;
    },
    close() {
      streamed?.close();
      return egress.close();
    },
  };
}

/** Undefined for a body that is not JSON, such as the page of a proxy. */
function parseError(bytes: Uint8Array): unknown {
  try {
    return parseJsonBytes(bytes);
  } catch {
    return undefined;
  }
}

/** The server's message and facts, under the error code that matches the status. */
function refusal(status: number, headers: Readonly<Record<string, string>>, body: unknown): SvcError {
  const found = (Object.keys(ERROR_KINDS) as ErrorCode[]).find((code) => ERROR_KINDS[code].http === status);
  const code = found ?? (status >= 500 ? "unavailable" : "invalid");
  try {
    const { error, ...listed } = body as Record<string, unknown>;
    const facts = JSON.parse(decodeURIComponent(headers[FACTS_HEADER] ?? "{}"));
    if (typeof error === "string") {
      const message = error.slice(0, SERVICE_LIMITS.error_read_chars);
      if (code === "too_many") return new TooManyError(message, askAgainIn(headers));
      return new SvcError(code, message, { cause_code: causeIn(headers), extra: { ...listed, ...facts } });
    }
  } catch {
    // Not an error of this service, but perhaps the page of a proxy.
  }
  return new SvcError(code, `the server answered with status ${status}`);
}

/**
 * Seconds to wait before the next attempt. A proxy may send a date, which is read as one second: a retry that comes too
 * early gets the same response again.
 */
function askAgainIn({ "retry-after": retryAfter = "" }: Readonly<Record<string, string>>): number {
  const seconds = Number(retryAfter);
  return seconds > 0 ? seconds : 1;
}

/** Undefined if the server names no code, or one that this version does not know. */
function causeIn({ [ERROR_CODE_HEADER]: named = "" }: Readonly<Record<string, string>>) {
  return isCauseCode(named) ? named : undefined;
}
