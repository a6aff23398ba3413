/**
 * Fast path for intents and outcomes on plain `node:http`, because the router's hooks and replies cost as much as a
 * decision. It accepts only the usual form of these requests. Every other request goes to the router.
 *
 * Both paths use the same functions to read, run and refuse a request. `test/http/straight.test.ts` compares their
 * responses byte for byte.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { messageOf } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import type { ServiceOperation } from "../../operations/pipeline/operation.ts";
import { reportStepOutcome, submitIntent } from "../../operations/runs/intents-and-outcomes.ts";
import type { HttpRow } from "../api/http-row.ts";
import { HTTP_TABLE } from "../api/http-table.ts";
import { type RawRequest, readRequest } from "../api/read-request.ts";
import type { HttpDeps } from "../deps.ts";
import { type RefusalCause, refusalOf } from "../refusal.ts";
import { routeOf } from "../routes/operation-routes.ts";
import { findAmbiguousHeader } from "./ambiguous-headers.ts";
import { HttpCaller } from "./caller.ts";
import { discardUnread } from "./drain-body.ts";
import { readJsonBody } from "./json-body.ts";
import { readRequestBody } from "./request-body.ts";

interface Straight extends HttpDeps {
  nextRequestId(): string;
  /** Whether the server is closing. The router then reports this to clients. */
  isClosing(): boolean;
}

interface Place {
  row: HttpRow;
  route: string;
}

function placeOf(op: ServiceOperation): Place {
  const row = HTTP_TABLE.find((one) => one.op === op)!;
  return { row, route: routeOf(row) };
}

const INTENT = placeOf(submitIntent);
const OUTCOME = placeOf(reportStepOutcome);
/** Matches ids and step numbers that need no decoding. The operation validates them further. */
const PLAIN_URL = /^\/v1\/runs\/([A-Za-z0-9._-]{1,128})\/(?:intents|steps\/(\d{1,15})\/outcome)$/;
const PLAIN_LENGTH = /^[1-9]\d{0,6}$/;
const NO_QUERY = {};

export function handleFastPath(server: Server, parts: Straight): void {
  const [router] = server.listeners("request") as RequestListener[];
  server.removeListener("request", router!);
  server.on("request", (request, response) => {
    const plain = parts.isClosing() ? undefined : plainForm(request);
    if (plain === undefined) router!(request, response);
    else
      new Exchange(parts, plain, request, response).answer().catch((error) => {
        // The response cannot report this failure, and one request must not end the server.
        parts.app.log.error("unexpected failure", {
          error: messageOf(error),
          stack: (error as Error)?.stack,
        });
        response.destroy();
      });
  });
}

interface Plain {
  place: Place;
  params: RawRequest["params"];
}

function plainForm({ method, url, headers }: IncomingMessage): Plain | undefined {
  if (method !== "POST" || headers["content-type"] !== "application/json") return undefined;
  const length = headers["content-length"];
  if (length === undefined || !PLAIN_LENGTH.test(length) || Number(length) > SERVICE_LIMITS.body_bytes)
    return undefined;
  const [, id, n] = PLAIN_URL.exec(url!) ?? [];
  if (id === undefined) return undefined;
  return n === undefined ? { place: INTENT, params: { id } } : { place: OUTCOME, params: { id, n } };
}

/** One request and its response. */
class Exchange {
  private readonly parts: Straight;
  private readonly plain: Plain;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly arrived = performance.now();
  private readonly request_id: string;
  private principal: CallerPrincipal | null = null;
  private refused: RefusalCause | undefined;
  /**
   * Closes the connection after invalid JSON, as the router does: the client may have lost track of its own framing.
   */
  private closes = false;

  constructor(parts: Straight, plain: Plain, request: IncomingMessage, response: ServerResponse) {
    this.parts = parts;
    this.plain = plain;
    this.request = request;
    this.response = response;
    this.request_id = parts.nextRequestId();
  }

  async answer(): Promise<void> {
    try {
      const admitted = this.admit();
      if (admitted !== undefined) await admitted;
      const body = await readRequestBody(this.request);
      // The client disconnected in the middle of its request, and reads no response.
      if (body === undefined) return;
      const reading = this.read(body);
      const value = reading instanceof Promise ? await reading : reading;
      // The body arrived slowly, so the caller's authority may have changed since the first check.
      if (performance.now() - this.arrived > SERVICE_LIMITS.look_again_ms) this.principal = await this.who();
      this.send(this.plain.place.row.status, (await this.perform(value)) as object);
    } catch (error) {
      const { status, headers, body, cause } = refusalOf(this.parts.app, error);
      this.refused = cause;
      await discardUnread(this.request);
      this.send(status, body, headers);
    }
  }

  /** Runs before the body is read, so the body of an unauthenticated caller is never parsed. */
  private admit(): Promise<void> | undefined {
    const wrong = findAmbiguousHeader(this.request);
    if (wrong !== undefined) throw wrong;
    const found = this.who();
    if (found instanceof Promise) return found.then((principal) => this.comeIn(principal));
    this.comeIn(found);
    return undefined;
  }

  private comeIn(principal: CallerPrincipal): void {
    this.principal = principal;
    this.parts.app.quotas?.admit(principal);
  }

  private who(): CallerPrincipal | Promise<CallerPrincipal> {
    return this.parts.authenticate(this.request.headers.authorization);
  }

  private read(bytes: Uint8Array): unknown {
    this.closes = true;
    const body = readJsonBody(bytes);
    if (body instanceof Promise) return body.then((value) => this.wasRead(value));
    return this.wasRead(body);
  }

  private wasRead(body: unknown): unknown {
    this.closes = false;
    return body;
  }

  private perform(body: unknown): Promise<unknown> {
    const { headers } = this.request;
    const { params, place } = this.plain;
    const { row } = place;
    const again = () => this.who();
    const caller = new HttpCaller(this.parts.app, this.principal!, again, headers, this.response);
    const { input, complaint } = readRequest(row, { params, query: NO_QUERY, headers, body });
    return dispatchOperation(row.op, caller, input, complaint);
  }

  private send(status: number, answer: object, more?: Readonly<Record<string, string>>): void {
    const text = JSON.stringify(answer);
    const headers = ["x-request-id", this.request_id];
    if (this.closes) headers.push("connection", "close");
    for (const name in more) headers.push(name, more[name]!);
    headers.push("content-type", "application/json; charset=utf-8");
    headers.push("content-length", String(Buffer.byteLength(text)));
    this.response.writeHead(status, headers);
    this.response.end(text);
    this.parts.answered?.({
      method: "POST",
      path: this.request.url!,
      route: this.plain.place.route,
      status,
      ms: performance.now() - this.arrived,
      principal: this.principal?.name ?? null,
      request_id: this.request_id,
      ...this.refused,
    });
  }
}
