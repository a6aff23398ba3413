/**
 * Agents and people who ask the cluster's servers. A call with an Idempotency-Key is repeated until it is answered,
 * through any server; any other request is sent once, and without an answer nobody knows what became of it.
 */
import { randomUUID } from "node:crypto";
import { type Caller, keyOf } from "./config.ts";

const DEADLINE_MS = 8_000;
const PAUSE_MS = 200;
export interface Reply {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the load looks into bodies freely
  body: any;
}

export interface CallInput {
  tool: string;
  args: Record<string, unknown>;
}

/** An accepted call or any other answer that the ledger must have. */
export interface Answer {
  event: string;
  /** `run/step`, or the id of the decided object. */
  subject: string;
  call: number;
  answered: number;
}

export class Client {
  readonly answers: Answer[] = [];
  /** When the newest answer came, and the longest time without one since `quiet` was set to 0. */
  newest = performance.now();
  longest_gap_ms = 0;
  refused = 0;
  /** Requests that reached a server and got an error, or (status 0) no answer. */
  readonly unserved: { sent: number; status: number; text: string }[] = [];
  /** Answers that no contest expects. */
  readonly problems: string[] = [];
  /** No request is repeated after this. */
  ends = false;
  private turn = 0;
  private readonly places: readonly string[];

  constructor(places: readonly string[]) {
    this.places = places;
  }

  /** The answer, or undefined if none came: the request can have been recorded or not. */
  async once(caller: Caller, method: string, path: string, body?: unknown): Promise<Reply | undefined> {
    return this.send(this.place(), caller, method, path, body);
  }

  /** Repeats the request until there is an answer; undefined only if the run ended first. */
  async surely(caller: Caller, method: string, path: string, body?: unknown): Promise<Reply | undefined> {
    const key = method === "POST" ? randomUUID() : undefined;
    while (!this.ends) {
      const place = this.place();
      const reply = await this.send(place, caller, method, path, body, key);
      if (reply !== undefined) return reply;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return undefined;
  }

  private place(): string {
    return this.places[this.turn++ % this.places.length]!;
  }

  note(event: string, subject: string, call: number): void {
    this.answers.push({ event, subject, call, answered: performance.now() });
  }

  private async send(
    place: string,
    caller: Caller,
    method: string,
    path: string,
    body: unknown,
    key?: string,
  ): Promise<Reply | undefined> {
    const sent = performance.now();
    try {
      const response = await fetch(`${place}${path}`, {
        method,
        signal: AbortSignal.timeout(DEADLINE_MS),
        headers: {
          authorization: `Bearer ${keyOf(caller)}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(key === undefined ? {} : { "idempotency-key": key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.status >= 500 || response.status === 429) {
        this.refused++;
        this.unserved.push({ sent, status: response.status, text: text.slice(0, 200) });
        return undefined;
      }
      // A repeated removal finds nothing any more.
      const isKnown = response.ok || response.status === 409 || response.status === 404;
      if (!isKnown) this.problems.push(`${method} ${path}: ${response.status} ${text.slice(0, 200)}`);
      const now = performance.now();
      this.longest_gap_ms = Math.max(this.longest_gap_ms, now - this.newest);
      this.newest = now;
      return { status: response.status, body: text === "" ? null : JSON.parse(text) };
    } catch (error) {
      this.refused++;
      // A server that does not listen was not reached: a balancer asks the other one.
      const { code } = ((error as Error).cause ?? {}) as { code?: string };
      if (code !== "ECONNREFUSED") this.unserved.push({ sent, status: 0, text: code ?? String(error) });
      return undefined;
    }
  }
}
