/**
 * A push service as RFC 8030 describes it, with TLS, and browsers that subscribe there. It checks every header to the
 * byte, verifies who signed (RFC 8292) and decrypts (RFC 8291), by hand and with node:crypto alone.
 */
import {
  createDecipheriv,
  createECDH,
  createHmac,
  createPublicKey,
  type ECDH,
  hkdfSync,
  randomBytes,
  verify,
} from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import type * as Tls from "node:tls";
import { afterAll } from "vitest";
import { selfSigned } from "../golden/notify/support/certificate.ts";

const b64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
const bytesOf = (text: string) => Buffer.from(text, "base64url");

export interface ReceivedPush {
  browser: PushBrowser;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages freely
  message: any;
  /** Its text with the filling. */
  text: string;
  ttl: number;
  urgency: string;
  topic: string;
  subject: string;
}

/** A browser: the keys that its push messages are encrypted for. */
export class PushBrowser {
  readonly endpoint: string;
  readonly auth = randomBytes(16);
  readonly keys: ECDH;
  /** Public key of the service that it subscribed to. */
  server_key: string | null = null;

  constructor(endpoint: string) {
    this.endpoint = endpoint;
    this.keys = createECDH("prime256v1");
    this.keys.generateKeys();
  }

  get subscription() {
    return {
      endpoint: this.endpoint,
      expirationTime: null,
      keys: { p256dh: b64(this.keys.getPublicKey()), auth: b64(this.auth) },
    };
  }

  /** RFC 8291 with one record of RFC 8188. */
  decrypt(body: Buffer): string {
    const salt = body.subarray(0, 16);
    const record = body.readUInt32BE(16);
    const id = body.subarray(21, 21 + body[20]!);
    const sealed = body.subarray(21 + body[20]!);
    if (sealed.length > record) throw new Error("more than one record");
    const shared = this.keys.computeSecret(id);
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.keys.getPublicKey(), id]);
    const ikm = Buffer.from(hkdfSync("sha256", shared, this.auth, info, 32));
    const key = Buffer.from(hkdfSync("sha256", ikm, salt, "Content-Encoding: aes128gcm\0", 16));
    const nonce = Buffer.from(hkdfSync("sha256", ikm, salt, "Content-Encoding: nonce\0", 12));
    const decipher = createDecipheriv("aes-128-gcm", key, nonce);
    decipher.setAuthTag(sealed.subarray(-16));
    const plain = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
    const end = plain.lastIndexOf(2);
    if (plain.subarray(end + 1).some((byte) => byte !== 0)) throw new Error("the padding is not zero");
    return plain.subarray(0, end).toString("utf8");
  }
}

export interface PushService {
  origin: string;
  received: ReceivedPush[];
  /** What it found wrong with requests; empty for a sender that keeps to the standards. */
  problems: string[];
  /** Its answer to the next requests, instead of 201. */
  answers: { status: number; headers?: Record<string, string> }[];
  browser(): PushBrowser;
  close(): Promise<void>;
}

/** Makes TLS clients of this process trust the certificate, as NODE_EXTRA_CA_CERTS would. */
function trustCertificate(cert: string): void {
  const tls = createRequire(import.meta.url)("node:tls") as {
    -readonly [K in keyof typeof Tls]: (typeof Tls)[K];
  };
  const before = tls.createSecureContext;
  tls.createSecureContext = (options) => {
    const made = before(options);
    if (options?.ca === undefined) (made.context as { addCACert(cert: string): void }).addCACert(cert);
    return made;
  };
}

function verifiedSubject(header: string, origin: string, browser: PushBrowser): string {
  const [, token = "", key = ""] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(header) ?? [];
  if (key !== browser.server_key) throw new Error("the key is not the one that the browser subscribed to");
  const [head = "", body = "", signature = ""] = token.split(".");
  const { alg, typ } = JSON.parse(bytesOf(head).toString());
  if (alg !== "ES256" || typ !== "JWT") throw new Error("the token is not an ES256 JWT");
  const point = bytesOf(key);
  const jwk = { kty: "EC", crv: "P-256", x: b64(point.subarray(1, 33)), y: b64(point.subarray(33)) };
  const signer = { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" as const };
  if (!verify("sha256", Buffer.from(`${head}.${body}`), signer, bytesOf(signature)))
    throw new Error("the signature does not hold");
  const { aud, exp, sub } = JSON.parse(bytesOf(body).toString());
  if (aud !== origin) throw new Error(`the audience is ${aud}`);
  const left = exp - Date.now() / 1_000;
  if (left <= 0 || left > 86_400) throw new Error("the token ends outside the next 24 hours");
  if (!/^(mailto:|https:)/.test(sub)) throw new Error(`the subject is ${sub}`);
  return sub;
}

function checked(request: IncomingMessage, body: Buffer, browser: PushBrowser, origin: string): ReceivedPush {
  const { ttl, urgency, topic, authorization } = request.headers as Record<string, string | undefined>;
  if (!/^\d{1,7}$/.test(ttl ?? "")) throw new Error(`TTL is ${ttl}`);
  if (!/^(very-low|low|normal|high)$/.test(urgency ?? "")) throw new Error(`Urgency is ${urgency}`);
  if (!/^[\w-]{1,32}$/.test(topic ?? "")) throw new Error(`Topic is ${topic}`);
  if (request.headers["content-encoding"] !== "aes128gcm") throw new Error("not aes128gcm");
  if (request.headers["content-type"] !== "application/octet-stream") throw new Error("not octets");
  if (Number(request.headers["content-length"]) !== body.length) throw new Error("no content-length");
  if (body.length > 4_096) throw new Error("over 4096 bytes");
  const subject = verifiedSubject(authorization ?? "", origin, browser);
  const text = browser.decrypt(body);
  return {
    browser,
    message: JSON.parse(text),
    text,
    ttl: Number(ttl),
    urgency: urgency!,
    topic: topic!,
    subject,
  };
}

const NAME = "localhost";
let certificate: ReturnType<typeof selfSigned> | undefined;

/** One for all services of the process: clients distinguish certificates of one name by nothing else. */
function trusted(): { key: string; cert: string } {
  if (certificate === undefined) {
    certificate = selfSigned([NAME]);
    trustCertificate(certificate.cert);
  }
  return certificate;
}

export async function pushService(): Promise<PushService> {
  const { key, cert } = trusted();
  const browsers = new Map<string, PushBrowser>();
  const received: ReceivedPush[] = [];
  const problems: string[] = [];
  const answers: PushService["answers"] = [];
  let origin = "";
  const accept = (request: IncomingMessage, body: Buffer, response: ServerResponse) => {
    const next = answers.shift();
    if (next !== undefined) return void response.writeHead(next.status, next.headers ?? {}).end("no");
    const browser = browsers.get(request.url ?? "");
    if (browser === undefined) return void response.writeHead(410).end();
    try {
      if (request.method !== "POST") throw new Error(`method ${request.method}`);
      received.push(checked(request, body, browser, origin));
      response.writeHead(201, { location: `${origin}/m/${b64(randomBytes(9))}` }).end();
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
      response.writeHead(400).end();
    }
  };
  const server = createServer({ key, cert }, (request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => accept(request, Buffer.concat(parts), response));
  });
  await new Promise<void>((resolve) => server.listen(0, NAME, resolve));
  origin = `https://${NAME}:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  // Outside a test, such as for pictures, the caller closes it.
  if (process.env["VITEST"] !== undefined) afterAll(close);
  return {
    origin,
    received,
    problems,
    answers,
    close,
    browser() {
      const path = `/push/${createHmac("sha256", randomBytes(16)).update("path").digest("base64url")}`;
      const browser = new PushBrowser(`${origin}${path}`);
      browsers.set(path, browser);
      return browser;
    },
  };
}
