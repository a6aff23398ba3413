/** Reads the server name in the greeting of a TLS client, without answering it. */
import type { Socket } from "node:net";
import { startTimer } from "../kernel/env.ts";

const MAX_HELLO_BYTES = 65_536;
const HELLO_MS = 10_000;

export interface ClientHello {
  /** Every byte that the client sent so far. */
  readonly bytes: Buffer;
  /** Null if the greeting names no server. */
  readonly server_name: string | null;
}

/** Waits for the whole greeting. Resolves to the reason why there is none. */
export function readClientHello(socket: Socket, head: Buffer): Promise<ClientHello | { problem: string }> {
  return new Promise((resolve) => {
    let bytes = head;
    const stopTimer = startTimer(HELLO_MS, () => end({ problem: "the client sent no TLS greeting in time" }));
    const end = (found: ClientHello | { problem: string }) => {
      stopTimer();
      socket.removeListener("readable", look);
      socket.removeListener("close", gone);
      resolve(found);
    };
    const gone = () => end({ problem: "the client closed the connection before its TLS greeting" });
    const look = () => {
      const chunk = socket.read() as Buffer | null;
      if (chunk !== null) bytes = Buffer.concat([bytes, chunk]);
      const found = parseClientHello(bytes);
      if (found === "more" && bytes.length <= MAX_HELLO_BYTES) return;
      if (found === "more" || found === "other")
        end({ problem: "only TLS is understood here: the connection does not begin with a TLS greeting" });
      else end({ bytes, server_name: found.server_name });
    };
    socket.on("readable", look);
    socket.once("close", gone);
    look();
  });
}

/** `more` if the greeting is not complete, `other` if it is none. */
function parseClientHello(bytes: Buffer): { server_name: string | null } | "more" | "other" {
  const joined: Buffer[] = [];
  let at = 0;
  for (;;) {
    if (bytes.length > at && bytes[at] !== 0x16) return "other";
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return "other";
    if (bytes.length < at + 5) return "more";
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > 16_640) return "other";
    joined.push(bytes.subarray(at + 5, at + 5 + length));
    const message = joined.length === 1 ? joined[0]! : Buffer.concat(joined);
    if (message.length > 0 && message[0] !== 1) return "other";
    if (message.length >= 4 && message.length >= 4 + message.readUIntBE(1, 3))
      return readHello(message.subarray(4, 4 + message.readUIntBE(1, 3)));
    if (bytes.length < at + 5 + length) return "more";
    at += 5 + length;
  }
}

function readHello(body: Buffer): { server_name: string | null } | "other" {
  try {
    let at = 34;
    at += 1 + body.readUInt8(at);
    at += 2 + body.readUInt16BE(at);
    at += 1 + body.readUInt8(at);
    if (at >= body.length) return { server_name: null };
    const end = at + 2 + body.readUInt16BE(at);
    if (end > body.length) return "other";
    at += 2;
    let server_name: string | null = null;
    while (at < end) {
      const type = body.readUInt16BE(at);
      const length = body.readUInt16BE(at + 2);
      if (at + 4 + length > end) return "other";
      if (type === 0) {
        // Two names are two meanings: no client sends them.
        if (server_name !== null || length < 5 || body.readUInt16BE(at + 4) !== length - 2) return "other";
        if (body[at + 6] !== 0 || body.readUInt16BE(at + 7) !== length - 5) return "other";
        server_name = body.toString("latin1", at + 9, at + 4 + length).toLowerCase();
      }
      at += 4 + length;
    }
    return { server_name };
  } catch (error) {
    if (error instanceof RangeError) return "other";
    throw error;
  }
}
