/** Request bodies of `fetch` callers, and response bodies with a size limit. */
import type { BodyInit, RequestInit } from "undici";
import { SvcError } from "../kernel/errors.ts";

interface FetchArguments {
  readonly url: string | URL;
  readonly init: RequestInit;
  readonly body: BodyInit | null;
  readonly replayable: boolean;
}

/**
 * Reads the arguments of `fetch(input, init)`. Copies a Request object field by field, because undici does not
 * recognize one made by the runtime's own fetch.
 */
export function toFetchArguments(input: unknown, given: unknown): FetchArguments {
  const init = { ...((given ?? {}) as RequestInit) };
  let url: string | URL;
  if (typeof input === "string" || input instanceof URL) url = input;
  else {
    const request = input as Request;
    url = request.url;
    init.method ??= request.method;
    init.headers ??= [...request.headers] as [string, string][];
    init.body ??= request.body as BodyInit | null;
    init.signal ??= request.signal;
    init.redirect ??= request.redirect;
  }
  const body = init.body ?? null;
  const replayable = body === null || typeof body === "string" || ArrayBuffer.isView(body) || isParams(body);
  if (!replayable) init.duplex = "half";
  return { url, init, body, replayable };
}

function isParams(body: unknown): boolean {
  return body instanceof URLSearchParams || body instanceof ArrayBuffer;
}

type Readable = {
  getReader(): { read(): Promise<{ done: boolean; value?: unknown }>; cancel(): Promise<void> };
};

/** Reads at most `maxBytes`, counted after decompression, so that a small response cannot become a huge one. */
export async function readBody(body: Readable | null, maxBytes: number, cut: boolean): Promise<Uint8Array> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const chunk = value as Uint8Array;
    chunks.push(chunk);
    size += chunk.length;
    if (size <= maxBytes) continue;
    await reader.cancel().catch(() => undefined);
    if (!cut)
      throw new SvcError("delivery_failed", `the answer is longer than ${maxBytes} bytes, and is not read`);
    return Buffer.concat(chunks).subarray(0, maxBytes);
  }
  return Buffer.concat(chunks);
}
