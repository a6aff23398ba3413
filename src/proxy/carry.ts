/** Carries one request to its host, and reads the answer: its value for the record, its bytes for the client. */
import { createHash } from "node:crypto";
import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { ExchangeAnswer, ExchangeRequest, GuardedExchange } from "../egress/exchange.ts";
import { SvcError } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import { answerValue, VALUE_BYTES } from "../rules/http/answer-value.ts";
import { type HttpOrigin, type HttpSpec, hostText } from "../rules/http/routes.ts";
import type { CredentialVault } from "./credentials.ts";
import { endToEnd, type HeaderLine, headerLines, headerValue, withoutHeaders } from "./wire.ts";

export interface CarriedRequest {
  readonly origin: HttpOrigin;
  readonly method: string;
  readonly target: string;
  /** Without headers of the connection. */
  readonly headers: readonly HeaderLine[];
  readonly body: { readonly bytes: number; readonly sha256: string; open(): Readable | Buffer } | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Dependencies for sending a request: the guarded connection, and the credentials of its hosts. */
export interface RequestCarrier {
  readonly exchange: GuardedExchange;
  readonly vault: CredentialVault;
}

export interface CarriedAnswer {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  /** Decompressed. Reading it to its end may throw. */
  readonly body: Readable;
  readonly upgraded: ExchangeAnswer["upgraded"];
}

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

/** Methods that have a body by their meaning, and so a length even if it is zero. */
const WITH_BODY = new Set(["POST", "PUT", "PATCH"]);

export async function carryRequest(
  { exchange, vault }: RequestCarrier,
  request: CarriedRequest,
): Promise<CarriedAnswer> {
  const { target, headers, mask } = await vault.sign({ ...request, body_sha256: request.body?.sha256 });
  const answer = await exchange.send(toExchange({ ...request, target, headers }));
  const lines = endToEnd(answer.headers).map(
    ([name, value]): HeaderLine => [mask.text(name), mask.text(value)],
  );
  if (answer.upgraded !== undefined)
    return { status: answer.status, headers: lines, body: answer.body, upgraded: answer.upgraded };
  const read = decoded(request, answer, lines);
  if (mask.isEmpty) return { status: answer.status, ...read, upgraded: undefined };
  return {
    status: answer.status,
    headers: withoutHeaders(read.headers, "content-length"),
    body: through(read.body, mask.stream()),
    upgraded: undefined,
  };
}

function toExchange({ origin, method, target, headers, body, signal }: CarriedRequest): ExchangeRequest {
  const own = withoutHeaders(headers, "host", "content-length", "accept-encoding");
  const bytes = body?.bytes ?? 0;
  const lines: HeaderLine[] = [
    ["Host", hostText(origin)],
    ...own,
    // The proxy reads the answer, so it would only undo a compression.
    ["Accept-Encoding", "identity"],
    ...(bytes > 0 || WITH_BODY.has(method) ? [["Content-Length", String(bytes)] as const] : []),
  ];
  return {
    ...origin,
    method,
    target,
    headers: lines.flat(),
    body: bytes > 0 ? body!.open() : undefined,
    signal,
  };
}

function decoded(
  { method }: Pick<CarriedRequest, "method">,
  { status, headers, body }: ExchangeAnswer,
  lines: readonly HeaderLine[],
): { headers: HeaderLine[]; body: Readable } {
  if (method === "HEAD" || status === 204 || status === 304) return { headers: [...lines], body };
  // A coding that only the client would undo hides a credential from the mask.
  const transfers = codingsOf(headerLines(headers), "transfer-encoding").filter((one) => one !== "chunked");
  const codings = [...transfers, ...codingsOf(lines, "content-encoding")];
  if (codings.length === 0) return { headers: withoutHeaders(lines, "content-encoding"), body };
  const makeDecoder = codings.length === 1 ? DECODERS.get(codings[0]!) : undefined;
  if (makeDecoder === undefined || transfers.length > 0) {
    body.destroy();
    throw new SvcError("delivery_failed", "the answer has a content coding that the proxy cannot read");
  }
  return {
    headers: withoutHeaders(lines, "content-encoding", "content-length"),
    body: through(body, makeDecoder()),
  };
}

/** Codings of all lines with this name, in order. */
const codingsOf = (lines: readonly HeaderLine[], name: string): string[] =>
  lines
    .filter(([own]) => own.toLowerCase() === name)
    .flatMap(([, value]) => value.split(","))
    .map((one) => one.trim().toLowerCase())
    .filter((one) => one !== "" && one !== "identity");

/** The source through the transformation. Whichever of the two ends early ends the other. */
function through(source: Readable, transform: Transform): Readable {
  // Reading the transformation reports a failure of either.
  pipeline(source, transform, () => {});
  return transform;
}

/** The start of a body, kept as long as it may become a value. */
export class AnswerRecord {
  private readonly hash = createHash("sha256");
  private kept: Buffer[] | undefined = [];
  private bytes = 0;

  add(chunk: Buffer): void {
    this.bytes += chunk.length;
    this.hash.update(chunk);
    if (this.bytes > VALUE_BYTES) this.kept = undefined;
    else this.kept?.push(chunk);
  }

  get content(): Buffer | undefined {
    return this.kept === undefined ? undefined : Buffer.concat(this.kept);
  }

  /** `{status, body}` as it is recorded, with the headers that the tool's manifest names. */
  result({ status, headers }: Pick<CarriedAnswer, "status" | "headers">, http?: HttpSpec): JsonObject {
    const { content } = this;
    const value =
      content === undefined ? undefined : answerValue(headerValue(headers, "content-type"), content);
    const body: JsonValue =
      value ?? (value === null ? null : { bytes: this.bytes, sha256: this.hash.digest("hex") });
    return http?.answer_headers === undefined
      ? { status, body }
      : { status, body, headers: namedHeaders(headers, http.answer_headers) };
  }
}

/** Leaves out a repeated header, whose value is not certain. */
function namedHeaders(lines: readonly HeaderLine[], names: readonly string[]): JsonObject {
  const found = names.flatMap((name) => {
    const [value, ...others] = lines.filter(([own]) => own.toLowerCase() === name);
    return value === undefined || others.length > 0 ? [] : [[name, value[1]]];
  });
  return Object.fromEntries(found);
}
