/**
 * Credentials that the proxy adds for the agent: to the named hosts alone, over verified TLS, after the decision. Their
 * values are in no record, log line or error.
 */
import { readFile } from "node:fs/promises";
import aws4 from "aws4";
import { runCommand } from "../child-process/run-command.ts";
import type { CredentialSpec } from "../config/sections/proxy.ts";
import { NotSentError } from "../egress/exchange.ts";
import { MIN_SECRET_CHARS, SecretMask } from "../egress/secret-mask.ts";
import { isJsonObject, parseJson } from "../kernel/json/json.ts";
import { type HttpOrigin, hostText, originOf } from "../rules/http/routes.ts";
import type { HeaderLine } from "./wire.ts";

const COMMAND_MS = 30_000;
/** How long the output of a command is used. */
const FRESH_MS = 60_000;
/** More than there are credentials, so that only values that were renewed are forgotten. */
const MAX_ADDED = 4_000;
const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** A request before its credentials are added. */
export interface UnsignedRequest {
  readonly origin: HttpOrigin;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly HeaderLine[];
  /** SHA-256 of the body; undefined without one. */
  readonly body_sha256: string | undefined;
}

export interface SignedRequest {
  readonly target: string;
  readonly headers: HeaderLine[];
  /** Masks all credentials that were added so far, wherever they come back. */
  readonly mask: SecretMask;
}

const failure = (name: string, why: string) =>
  new NotSentError(`credential ${name}: ${why}; nothing was sent`, undefined);

export class CredentialVault {
  private readonly specs: readonly CredentialSpec[];
  private readonly env: Readonly<Record<string, string | undefined>>;
  /** Added ones, which any host may return: two hosts can share a server. */
  private readonly added = new Set<string>();
  private mask = new SecretMask([]);
  private readonly outputs = new Map<string, { text: Promise<string>; until_ms: number }>();

  constructor(specs: readonly CredentialSpec[], env: Readonly<Record<string, string | undefined>>) {
    this.specs = specs;
    this.env = env;
  }

  /** Origins that a credential names: always https. */
  get origins(): HttpOrigin[] {
    return this.specs.flatMap(({ hosts }) => hosts.map((host) => originOf({ scheme: "https", host })));
  }

  has(origin: HttpOrigin): boolean {
    return this.of(origin).length > 0;
  }

  private of({ scheme, host, port }: HttpOrigin): CredentialSpec[] {
    if (scheme !== "https") return [];
    return this.specs.filter(({ hosts }) =>
      hosts.some((text) => {
        const own = originOf({ scheme: "https", host: text });
        return own.host === host && own.port === port;
      }),
    );
  }

  /** Removes what the agent sent as a credential, and adds the host's own. */
  async sign(request: UnsignedRequest): Promise<SignedRequest> {
    const specs = this.of(request.origin);
    if (specs.length === 0) return { target: request.target, headers: [...request.headers], mask: this.mask };
    let headers = request.headers.filter(([name]) => !isCredentialHeader(name, specs));
    let target = withoutFields(request.target, specs);
    const secrets: string[] = [];
    const once: string[] = [];
    for (const spec of specs) {
      const value = await this.value(spec);
      const added = addCredential(spec, value, { ...request, headers, target });
      headers = [...headers, ...added.headers];
      target = added.target;
      secrets.push(...added.secrets);
      once.push(...(added.once ?? []));
    }
    return { target, headers, mask: this.remember(secrets, once) };
  }

  /** Masks these secrets from now on, in answers of every host. Those of this request alone are masked once. */
  private remember(secrets: readonly string[], once: readonly string[]): SecretMask {
    const added = secrets.filter((secret) => !this.added.has(secret));
    for (const secret of added) this.added.add(secret);
    for (const secret of this.added) if (this.added.size > MAX_ADDED) this.added.delete(secret);
    if (added.length > 0) this.mask = new SecretMask([...this.added]);
    return once.length > 0 ? new SecretMask([...this.added, ...once]) : this.mask;
  }

  private async value({ name, from }: CredentialSpec): Promise<string> {
    const text = (await this.read(name, from)).trim();
    if (text.length < MIN_SECRET_CHARS)
      throw failure(name, `its value is shorter than ${MIN_SECRET_CHARS} characters`);
    if (/[^\x20-\x7e]/.test(text) && !isJsonText(text))
      throw failure(name, "its value holds a line break or another character that no header may hold");
    return text;
  }

  private read(name: string, from: CredentialSpec["from"]): Promise<string> {
    if ("env" in from) {
      const text = this.env[from.env];
      return text === undefined
        ? Promise.reject(failure(name, "its environment variable is not set"))
        : Promise.resolve(text);
    }
    if ("file" in from)
      return readFile(from.file, "utf8").catch(() => {
        throw failure(name, "its file cannot be read");
      });
    const known = this.outputs.get(name);
    if (known !== undefined && performance.now() < known.until_ms) return known.text;
    const text = commandOutput(name, from.command);
    this.outputs.set(name, { text, until_ms: performance.now() + FRESH_MS });
    text.catch(() => this.outputs.delete(name));
    return text;
  }
}

async function commandOutput(name: string, command: readonly string[]): Promise<string> {
  const { code, stdout } = await runCommand(command, { input: "", timeout_ms: COMMAND_MS });
  if (code !== 0) throw failure(name, "its command failed");
  return stdout;
}

const isJsonText = (text: string): boolean => text.startsWith("{");

interface Added {
  readonly headers: readonly HeaderLine[];
  readonly target: string;
  readonly secrets: readonly string[];
  /** Secrets of this request alone. */
  readonly once?: readonly string[];
}

function addCredential(spec: CredentialSpec, value: string, request: UnsignedRequest): Added {
  const { target } = request;
  if ("header" in spec) {
    const sent = `${spec.header.prefix}${value}`;
    return { target, headers: [[spec.header.name, sent]], secrets: [value, sent] };
  }
  if ("query" in spec) {
    const field = new URLSearchParams([[spec.query, value]]).toString();
    return { target: `${target}${target.includes("?") ? "&" : "?"}${field}`, headers: [], secrets: [value] };
  }
  if ("basic" in spec) {
    const pair = Buffer.from(`${spec.basic.user}:${value}`).toString("base64");
    return { target, headers: [["Authorization", `Basic ${pair}`]], secrets: [value, pair] };
  }
  return awsSigned(spec, value, request);
}

function awsSigned(
  { name, aws_sigv4: { region, service } }: Extract<CredentialSpec, { aws_sigv4: object }>,
  value: string,
  { origin, method, target, headers, body_sha256 }: UnsignedRequest,
): Added {
  const keys = awsKeys(name, value);
  const own = headers.filter(([header]) => /^(?:content-type|x-amz-.*)$/i.test(header));
  if (own.some(([header, text]) => /^x-amz-content-sha256$/i.test(header) && text.startsWith("STREAMING-")))
    throw failure(name, "a body that is signed in chunks cannot be signed again");
  const signed = aws4.sign(
    {
      host: hostText(origin),
      path: target,
      method,
      region,
      service,
      headers: { ...Object.fromEntries(own), "X-Amz-Content-Sha256": body_sha256 ?? EMPTY_SHA256 },
    },
    keys,
  );
  const lines = Object.entries(signed.headers ?? {}).filter(([header]) =>
    /^(?:authorization|x-amz-(?:date|security-token|content-sha256))$/i.test(header),
  );
  const secrets = [keys.secretAccessKey, ...(keys.sessionToken === undefined ? [] : [keys.sessionToken])];
  const authorization = lines.find(([header]) => /^authorization$/i.test(header))?.[1];
  const signature = /Signature=([0-9a-f]+)/.exec(String(authorization))?.[1];
  return {
    target,
    headers: lines.map(([header, text]) => [header, String(text)]),
    secrets,
    once: signature === undefined ? [] : [signature],
  };
}

/** Keys as the credential process of AWS prints them, or `id:secret` with an optional `:token`. */
function awsKeys(name: string, text: string) {
  const wrong = failure(name, "its value must be id:secret or the JSON of a credential process");
  if (isJsonText(text)) {
    let value: unknown;
    try {
      value = parseJson(text);
    } catch {
      throw wrong;
    }
    const { AccessKeyId, SecretAccessKey, SessionToken } = value as Record<string, unknown>;
    if (
      !isJsonObject(value as never) ||
      typeof AccessKeyId !== "string" ||
      typeof SecretAccessKey !== "string"
    )
      throw wrong;
    return {
      accessKeyId: AccessKeyId,
      secretAccessKey: SecretAccessKey,
      ...(typeof SessionToken === "string" ? { sessionToken: SessionToken } : {}),
    };
  }
  const [accessKeyId, secretAccessKey, ...token] = text.split(":");
  if (!accessKeyId || !secretAccessKey) throw wrong;
  const sessionToken = token.join(":");
  return { accessKeyId, secretAccessKey, ...(sessionToken === "" ? {} : { sessionToken }) };
}

/** Whether the header carries a credential by its name. The AWS signature headers are generated again. */
function isCredentialHeader(name: string, specs: readonly CredentialSpec[]): boolean {
  const lower = name.toLowerCase();
  return (
    lower === "cookie" ||
    lower === "range" ||
    lower === "if-range" ||
    /^x-amz-(?:date|security-token|signature|credential|algorithm|signedheaders)$/.test(lower) ||
    (/(?:^|[-_])(?:auth|authorization|authentication|token|api-?key|apikey|secret|password|credential|credentials|session|key)(?:$|[-_])/.test(
      lower,
    ) &&
      lower !== "idempotency-key" &&
      !lower.startsWith("sec-websocket-")) ||
    specs.some((spec) => "header" in spec && spec.header.name.toLowerCase() === lower)
  );
}

const CREDENTIAL_FIELDS = new Set([
  "access_token",
  "api_key",
  "apikey",
  "api-key",
  "auth",
  "auth_token",
  "client_secret",
  "key",
  "password",
  "private_token",
  "secret",
  "sig",
  "signature",
  "token",
]);

/** Without the query fields that carry a credential by their name. */
function withoutFields(target: string, specs: readonly CredentialSpec[]): string {
  const at = target.indexOf("?");
  if (at < 0) return target;
  const kept = target
    .slice(at + 1)
    .split("&")
    .filter((pair) => {
      const name = new URLSearchParams(pair).keys().next().value?.toLowerCase() ?? "";
      const isOwn = specs.some((spec) => "query" in spec && spec.query.toLowerCase() === name);
      return !isOwn && !CREDENTIAL_FIELDS.has(name) && !name.startsWith("x-amz-");
    });
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join("&")}`;
}
