/**
 * Origin checks. A console in open mode accepts only requests that name this machine as host and come from the
 * console's own pages. This blocks DNS rebinding and forms posted from other sites. In login mode the session cookie
 * does most of that work, and posted forms must still come from the console's pages.
 */
import type { FastifyRequest } from "fastify";

export type RequestSource =
  | "own"
  /** Addressed to a name that is not this machine's. */
  | "foreign_host"
  /** Sent by a page of another origin. */
  | "foreign_origin";

/** Any port is accepted, since a tunnel's port is local too. The origin must match the host including the port. */
const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

export const isLocalHost = (host: string): boolean => LOCAL_HOST.test(host);

/** Classifies a request to an open console. */
export function classifyOpenRequest(request: FastifyRequest): RequestSource {
  const host = request.headers.host ?? "";
  if (!isLocalHost(host)) return "foreign_host";
  const { origin } = request.headers;
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`)
    return "foreign_origin";
  const site = fetchSite(request);
  return site === undefined || site === "same-origin" || site === "none" ? "own" : "foreign_origin";
}

/** Classifies a form post by its `sec-fetch-site` header, or by `origin` if the browser does not send that. */
export function classifyFormPost(request: FastifyRequest, console_url: string | null): RequestSource {
  const site = fetchSite(request);
  if (site !== undefined) return site === "same-origin" ? "own" : "foreign_origin";
  const { origin, host } = request.headers;
  if (origin === undefined) return "own";
  const from = URL.canParse(origin) ? new URL(origin).host : null;
  const known = [host?.toLowerCase(), console_url === null ? undefined : new URL(console_url).host];
  return from !== null && known.includes(from) ? "own" : "foreign_origin";
}

/**
 * Whether the user followed a link from another site. The browser does not send the strict cookie with such a request.
 */
export function isCrossSiteNavigation(request: FastifyRequest): boolean {
  const { headers } = request;
  return (
    request.method === "GET" &&
    (fetchSite(request) === "cross-site" || fetchSite(request) === "same-site") &&
    headers["sec-fetch-mode"] === "navigate" &&
    headers["sec-fetch-dest"] === "document"
  );
}

function fetchSite(request: FastifyRequest): string | undefined {
  const value = request.headers["sec-fetch-site"];
  return Array.isArray(value) ? value[0] : value;
}
