/** Push messages to a person's browser: what they say, encrypted for that browser alone (RFC 8030, 8291 and 8292). */
import { sha256Hex } from "../../kernel/hash.ts";
import { plainLine } from "../safe-text.ts";

const PUSH_TYPES = ["approval", "plan", "digest", "alert", "withdrawn", "test"] as const;
type PushType = (typeof PUSH_TYPES)[number];

/** All that leaves this service: ids, the rule, the agent and counts. Never a value, a tool's argument or a reason. */
export interface PushMessage {
  readonly type: PushType;
  /** Subject of the notification. A later message with this id replaces it. */
  readonly id: string;
  readonly rule: string | null;
  readonly agent: string | null;
  readonly escalated?: true;
  /** Number of requests that a digest is about. */
  readonly count?: number;
  /** Number of requests that wait, for the badge. */
  readonly waiting: number;
}

/** Key pair that signs the messages of this service (VAPID), as base64url. */
export interface ServerKeys {
  readonly public_key: string;
  readonly private_key: string;
  /** Contact address in every message. */
  readonly subject: string;
}

export interface BrowserTarget {
  readonly endpoint: string;
  readonly p256dh: string;
  readonly auth: string;
}

/** An encrypted message, ready to send. */
export interface PushDelivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

interface Sending {
  readonly keys: ServerKeys;
  /** How long the push service keeps it for a device that is off. */
  readonly keep_s: number;
  readonly urgency: "normal" | "high";
}

const NAME_CHARS = 256;
/** Messages are filled to a multiple of this length, so that their length tells little. */
const FILL = 256;

export type MessageSealer = (message: PushMessage, to: BrowserTarget, sending: Sending) => PushDelivery;

/** Loads the library with the first message. */
export async function loadSealer(): Promise<MessageSealer> {
  const { default: library } = await import("web-push");
  return (message, { endpoint, p256dh, auth }, { keys, keep_s, urgency }) => {
    const { public_key, private_key, subject } = keys;
    const made = library.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, textOf(message), {
      TTL: keep_s,
      urgency,
      topic: topicOf(message.id),
      contentEncoding: "aes128gcm",
      vapidDetails: { publicKey: public_key, privateKey: private_key, subject },
    });
    const { "Content-Length": _, ...headers } = made.headers;
    return {
      url: made.endpoint,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
      ),
      body: made.body ?? new Uint8Array(),
    };
  };
}

function textOf({ rule, agent, ...message }: PushMessage): string {
  const named = (name: string | null) => (name === null ? null : plainLine(name, NAME_CHARS));
  const text = JSON.stringify({ v: 1, ...message, rule: named(rule), agent: named(agent) });
  return text + " ".repeat((FILL - (Buffer.byteLength(text) % FILL)) % FILL);
}

/** The push service keeps one message of a topic, so a withdrawal replaces a request that was not delivered yet. */
const topicOf = (id: string): string => sha256Hex(id).slice(0, 32);
