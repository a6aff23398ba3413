/**
 * What a redirect may carry on. To another host go neither secrets nor a body: headers pass only if they
 * are known to be harmless, since a custom header is as likely a credential as Authorization is.
 */
import type { RuleName } from "./refusal.ts";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const HARMLESS = new Set(["accept", "accept-encoding", "accept-language", "user-agent"]);
const BODY_HEADERS = ["content-type", "content-length", "content-encoding", "transfer-encoding"];

export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly has_body: boolean;
  /** False for a stream, which can be read only once. */
  readonly replayable: boolean;
}

export function isRedirect(status: number, location: string | null): location is string {
  return REDIRECTS.has(status) && location !== null;
}

/** The request that follows a redirect, or the rule that forbids it. Where it leads is judged by the guard. */
export function nextHop(
  from: Hop,
  status: number,
  location: string,
  secretHeaders: readonly string[] = [],
): { hop: Hop } | { rule: RuleName } {
  let url: URL;
  try {
    url = new URL(location, from.url);
  } catch {
    return { rule: "redirect_target" };
  }
  if (from.url.protocol === "https:" && url.protocol === "http:") return { rule: "redirect_downgrade" };
  const { method, keepsBody } = methodAfter(from.method, status);
  const carriesBody = from.has_body && keepsBody;
  const near = sameHost(from.url, url);
  if (carriesBody && (!near || !from.replayable)) return { rule: "redirect_body" };
  const secret = new Set(secretHeaders.map((name) => name.toLowerCase()));
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(from.headers)) {
    if (!carriesBody && BODY_HEADERS.includes(name)) continue;
    if (near || (HARMLESS.has(name) && !secret.has(name))) headers[name] = value;
  }
  return { hop: { url, method, headers, has_body: carriesBody, replayable: from.replayable } };
}

function methodAfter(method: string, status: number): { method: string; keepsBody: boolean } {
  if (status === 307 || status === 308) return { method, keepsBody: true };
  if (method === "HEAD") return { method, keepsBody: false };
  if (status === 303) return { method: "GET", keepsBody: false };
  return method === "POST" ? { method: "GET", keepsBody: false } : { method, keepsBody: true };
}

/** The same host and port, or the same host's step from plain http to https on the usual ports. */
function sameHost(a: URL, b: URL): boolean {
  if (a.hostname !== b.hostname) return false;
  if (a.protocol === b.protocol) return a.port === b.port;
  return a.protocol === "http:" && b.protocol === "https:" && a.port === "" && b.port === "";
}
