/**
 * Transport over standard input and output with the strict parsing of request bodies, so two different lines never mean
 * the same call. An unreadable line gets an error, with its id if it has one.
 */
import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { messageOf } from "../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { readMessage } from "../http/session-transport.ts";
import { LineSplitter } from "../upstream/line-splitter.ts";

const INVALID_REQUEST = -32_600;
const PARSE_ERROR = -32_700;
/** Time limit for open requests after the input ended. A pipe ends with its last line. */
const LINGER_MS = 5_000;

export class StrictStdio implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private readonly input: Readable;
  private readonly output: Writable;
  private readonly lines = new LineSplitter(SERVICE_LIMITS.body_bytes);
  private readonly unanswered = new Set<string | number>();
  private ended = false;
  private over = false;

  constructor(input: Readable, output: Writable) {
    this.input = input;
    this.output = output;
  }

  async start(): Promise<void> {
    const { input, output } = this;
    input.on("data", this.onData);
    input.once("end", this.onEnd);
    input.once("close", this.onEnd);
    input.once("error", this.onGone);
    output.once("error", this.onGone);
  }

  private readonly onData = (chunk: Buffer): void => {
    if (this.lines.push(chunk, (line) => this.read(line))) return;
    this.refuse(null, INVALID_REQUEST, `a message is longer than ${SERVICE_LIMITS.body_bytes} bytes`);
    // The start of the next message is unknown now.
    void this.close();
  };

  private readonly onGone = (): void => void this.close();

  /** No further input arrives, but the client may still read answers. */
  private readonly onEnd = (): void => {
    if (this.ended) return;
    this.ended = true;
    if (this.unanswered.size === 0) this.onGone();
    else setTimeout(this.onGone, LINGER_MS).unref();
  };

  private read(line: string): void {
    if (line.trim() === "") return;
    const problem = this.deliver(line);
    if (problem !== null) this.refuse(problem.id, problem.code, problem.message);
  }

  private deliver(line: string): { id: string | number | null; code: number; message: string } | null {
    let value: JsonValue;
    try {
      value = parseJson(line);
    } catch (error) {
      return { id: idIn(line), code: PARSE_ERROR, message: messageOf(error) };
    }
    if (Array.isArray(value)) {
      return {
        id: null,
        code: INVALID_REQUEST,
        message: "batches are not accepted here; send one message per line",
      };
    }
    const message = readMessage(value);
    if (message === undefined) {
      return { id: idIn(line), code: INVALID_REQUEST, message: "this is not a JSON-RPC 2.0 message" };
    }
    if ("method" in message && "id" in message) this.unanswered.add(message.id);
    this.onmessage?.(message);
    return null;
  }

  private refuse(id: string | number | null, code: number, message: string): void {
    this.write({ jsonrpc: "2.0", id, error: { code, message } });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    this.write(message);
    if ("method" in message || message.id === undefined) return;
    this.unanswered.delete(message.id);
    if (this.ended && this.unanswered.size === 0) this.onGone();
  }

  private write(message: object): void {
    if (!this.over && this.output.writable) this.output.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    if (this.over) return;
    this.over = true;
    this.input.off("data", this.onData);
    this.input.pause();
    this.onclose?.();
  }
}

/** The id of an unusable line, so that its sender gets an answer. */
function idIn(line: string): string | number | null {
  try {
    const { id } = JSON.parse(line) as { id?: unknown };
    return typeof id === "string" || typeof id === "number" ? id : null;
  } catch {
    return null;
  }
}
