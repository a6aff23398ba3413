/** Back-pressure of a stream, on a socket whose reader takes nothing until the test lets it. */
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import type { WebSocket } from "ws";
import { verifies } from "../../../test/support/verifies.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { StreamConnection, type StreamParts } from "./connection.ts";

class SlowSocket extends EventEmitter {
  bufferedAmount = 0;
  isPaused = false;
  readonly sent: string[] = [];
  private readonly taken: (() => void)[] = [];
  send(text: string, _: { binary: boolean }, done: () => void): void {
    this.sent.push(text);
    this.bufferedAmount += text.length;
    this.taken.push(done);
  }
  /** The reader takes all that was sent. */
  drain(): void {
    this.bufferedAmount = 0;
    for (const done of this.taken.splice(0)) done();
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  close(): void {}
}

const seen: { request_id: string; status: number }[] = [];
let ids = 0;
const parts = {
  app: { log: { error: () => {}, warn: () => {} } },
  authenticate: () => ({ name: "bot" }),
  nextRequestId: () => `req_${ids++}`,
  isClosing: () => false,
  answered: (request: (typeof seen)[number]) => void seen.push(request),
} as unknown as StreamParts;

const settled = () => new Promise((resolve) => setImmediate(resolve));

it("a slow reader is not read from until it has received its answers", async () => {
  verifies("beyond.socket.back-pressure");
  const socket = new SlowSocket();
  new StreamConnection(parts, socket as unknown as WebSocket, new PassThrough(), {
    headers: {},
  } as IncomingMessage);
  const ask = () => socket.emit("message", Buffer.from('{"id":1,"operation":"none"}'));
  ask();
  await settled();
  expect([socket.sent.length, socket.isPaused]).toEqual([1, false]);
  socket.bufferedAmount = SERVICE_LIMITS.stream_buffer_bytes;
  ask();
  await settled();
  expect([socket.sent.length, socket.isPaused]).toEqual([2, true]);
  socket.drain();
  await settled();
  expect(socket.isPaused).toBe(false);
});

it("each message has its own log line and request id", async () => {
  verifies("beyond.socket.log");
  const socket = new SlowSocket();
  new StreamConnection(parts, socket as unknown as WebSocket, new PassThrough(), {
    headers: {},
  } as IncomingMessage);
  seen.length = 0;
  for (const id of [1, 2]) socket.emit("message", Buffer.from(JSON.stringify({ id, operation: "none" })));
  await settled();
  expect(seen.map(({ status }) => status)).toEqual([404, 404]);
  expect(new Set(seen.map(({ request_id }) => request_id)).size).toBe(2);
});
