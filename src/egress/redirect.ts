/**
 * Builds the request that follows a redirect. A different host gets no body, no secrets, and only headers known to be
 * harmless, because a custom header is as likely a credential as Authorization. A request keeps its method on every
 * hop, or the redirect is refused.
 */
import type { RuleName } from "./refusal.ts";

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const HARMLESS = new Set(["accept", "accept-encoding", "accept-language", "user-agent"]);

export interface RequestHop {
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

/** Returns the next request, or the rule that forbids the redirect. The guard checks the destination. */
export function nextHop(
  from: RequestHop,
  status: number,
  location: string,
  secretHeaders: readonly string[] = [],
): { hop: RequestHop } | { rule: RuleName } {
  let url: URL;
  try {
    url = new URL(location, from.url);
  } catch {
    return { rule: "redirect_target" };
  }
  if (from.url.protocol === "https:" && url.protocol === "http:") return { rule: "redirect_downgrade" };
  if (asksForPage(from.method, status)) return { rule: "redirect_method" };
  const near = sameHost(from.url, url);
  if (from.has_body && (!near || !from.replayable)) return { rule: "redirect_body" };
  const secret = new Set(secretHeaders.map((name) => name.toLowerCase()));
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(from.headers)) {
    if (near || (HARMLESS.has(name) && !secret.has(name))) headers[name] = value;
  }
  return { hop: { ...from, url, headers } };
}

/** A message that turned into a GET was not delivered: the 200 after it is a login page. */
function asksForPage(method: string, status: number): boolean {
  if (method === "GET" || method === "HEAD") return false;
  return status === 303 || (method === "POST" && (status === 301 || status === 302));
}

/** The same host and port, or the same host upgraded from http to https on the default ports. */
function sameHost(a: URL, b: URL): boolean {
  if (a.hostname !== b.hostname) return false;
  if (a.protocol === b.protocol) return a.port === b.port;
  return a.protocol === "http:" && b.protocol === "https:" && a.port === "" && b.port === "";
}
