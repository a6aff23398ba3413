/**
 * What agents send all day, intents and outcomes, answered straight on `node:http`: the router's hooks and replies
 * cost as much as a decision. Only the plain form of these requests is taken; whatever is unusual about one goes to
 * the router, which knows every form. Both ways read, perform and refuse by the same functions, and
 * `test/http/straight.test.ts` holds their answers against each other byte for byte.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { type RawRequest, readRequest } from "../api/read-request.ts";
import type { Row } from "../api/row.ts";
import { HTTP_TABLE } from "../api/table.ts";
import type { Operation } from "../app/door/operation.ts";
import { perform } from "../app/door/perform.ts";
import { intent, outcome } from "../app/operations/journal.ts";
import { messageOf } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Principal } from "../model/roles.ts";
import { HttpCaller } from "./caller.ts";
import { ambiguity } from "./headers.ts";
import { routeOf } from "./operation-routes.ts";
import type { HttpParts } from "./parts.ts";
import { readJsonBody } from "./read-body.ts";
import { type RefusalCause, refusalOf } from "./refusal.ts";
import { discardUnread } from "./unread-body.ts";
import { wholeBody } from "./whole-body.ts";

interface Straight extends HttpParts {
  nextRequestId(): string;
  /** Whether the server takes no more requests; the router tells clients so. */
  isClosing(): boolean;
}

interface Place {
  row: Row;
  route: string;
}

function placeOf(op: Operation): Place {
  const row = HTTP_TABLE.find((one) => one.op === op)!;
  return { row, route: routeOf(row) };
}

const INTENT = placeOf(intent);
const OUTCOME = placeOf(outcome);
/** Ids and step numbers that need no decoding; the operation judges the rest. */
const PLAIN_URL = /^\/v1\/runs\/([A-Za-z0-9._-]{1,128})\/(?:intents|steps\/(\d{1,15})\/outcome)$/;
const PLAIN_LENGTH = /^[1-9]\d{0,6}$/;
const NO_QUERY = {};

export function answerStraight(server: Server, parts: Straight): void {
  const [router] = server.listeners("request") as RequestListener[];
  server.removeListener("request", router!);
  server.on("request", (request, response) => {
    const plain = parts.isClosing() ? undefined : plainForm(request);
    if (plain === undefined) router!(request, response);
    else
      new Exchange(parts, plain, request, response).answer().catch((error) => {
        // Nothing is left to say over it, and no request ends a server.
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
  if (length === undefined || !PLAIN_LENGTH.test(length) || Number(length) > LIMITS.body_bytes)
    return undefined;
  const [, id, n] = PLAIN_URL.exec(url!) ?? [];
  if (id === undefined) return undefined;
  return n === undefined ? { place: INTENT, params: { id } } : { place: OUTCOME, params: { id, n } };
}

/** One request and its answer. */
class Exchange {
  private readonly parts: Straight;
  private readonly plain: Plain;
  private readonly request: IncomingMessage;
  private readonly response: ServerResponse;
  private readonly arrived = performance.now();
  private readonly request_id: string;
  private principal: Principal | null = null;
  private refused: RefusalCause | undefined;
  /** As the router does after a body that is no JSON: whoever sends one may have lost count of what it sends. */
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
      const body = await wholeBody(this.request);
      // A client that left in the middle of its request is told nothing.
      if (body === undefined) return;
      const reading = this.read(body);
      const value = reading instanceof Promise ? await reading : reading;
      // A body that took its time: authority may have changed since it was asked for.
      if (performance.now() - this.arrived > LIMITS.look_again_ms) this.principal = await this.who();
      this.send(this.plain.place.row.status, (await this.perform(value)) as object);
    } catch (error) {
      const { status, headers, body, cause } = refusalOf(this.parts.app, error);
      this.refused = cause;
      await discardUnread(this.request);
      this.send(status, body, headers);
    }
  }

  /** Before the body is read: a stranger's megabyte is not parsed. */
  private admit(): Promise<void> | undefined {
    const wrong = ambiguity(this.request);
    if (wrong !== undefined) throw wrong;
    const found = this.who();
    if (found instanceof Promise) return found.then((principal) => this.comeIn(principal));
    this.comeIn(found);
    return undefined;
  }

  private comeIn(principal: Principal): void {
    this.principal = principal;
    this.parts.app.quotas?.admit(principal);
  }

  private who(): Principal | Promise<Principal> {
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
    return perform(row.op, caller, input, complaint);
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
