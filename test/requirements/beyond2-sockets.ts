/** One connection for many calls: `GET /v1/stream`. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Sockets = section("beyond", "One connection", {
  "beyond.socket.credential": [44, "a stream takes its credential from the Authorization header alone"],
  "beyond.socket.origin": [44, "an origin that is not allowed is 403"],
  "beyond.socket.other-upgrades": [44, "upgrades to other protocols and on other paths are answered as plain requests"],
  "beyond.socket.message": [44, "a message names an operationId and is answered as its route answers"],
  "beyond.socket.errors": [44, "roles, validation and error bodies are those of the route"],
  "beyond.socket.idempotency": [44, "a message with an idempotency key is carried out once"],
  "beyond.socket.files": [44, "operations that answer files or streams are 400"],
  "beyond.socket.open-routes": [33, "health checks, metrics and the API document are 400: they are requested over HTTP"],
  "beyond.socket.unreadable": [44, "unreadable JSON closes with 1007; a message without the right form is 400"],
  "beyond.socket.size": [44, "a message over 1 MB is answered 413"],
  "beyond.socket.compression": [44, "nothing is compressed"],
  "beyond.socket.order": [44, "messages are answered in any order"],
  "beyond.socket.same-id": [44, "a second message with an open id is 400"],
  "beyond.socket.in-flight": [44, "at most 256 messages are in flight, more are 429"],
  "beyond.socket.quotas": [44, "each message counts for quotas"],
  "beyond.socket.log": [44, "each message has its own log line and request id"],
  "beyond.socket.revoked": [44, "a disabled or expired key gets 401, then close code 4401"],
  "beyond.socket.back-pressure": [44, "a slow reader is paused, not buffered without bound"],
  "beyond.socket.shutdown": [44, "at shutdown open messages are answered, then close code 1001"],
  "beyond.socket.library": [44, "the library in remote mode makes its calls over one stream, with the answers and errors of HTTP"],
  "beyond.socket.fallback": [44, "without a stream the library uses HTTP; a call whose answer was lost on the way is recorded once"],
  "beyond.socket.liar": [44, "a server that answers a stream with something else is not believed, and a redirect does not get the key"],
});
