/**
 * Where a request may come from. An open console answers only what is addressed to this machine by name and
 * comes from its own pages: a page elsewhere that resolves its name to 127.0.0.1, or posts a form here, is
 * refused. With a login the cookie does most of that work, and a form still has to come from these pages.
 */
import type { FastifyRequest } from "fastify";

export type Source =
  | "own"
  /** Addressed to a name that is not this machine's. */
  | "foreign_host"
  /** Sent by a page of another origin. */
  | "foreign_origin";

/** Any port: one that a tunnel listens on is as local, and the origin has to be the same, port included. */
const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

export const isLocalHost = (host: string): boolean => LOCAL_HOST.test(host);

/** Is this request for an open console its own? */
export function judgeOpen(request: FastifyRequest): Source {
  const host = request.headers.host ?? "";
  if (!isLocalHost(host)) return "foreign_host";
  const { origin } = request.headers;
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`)
    return "foreign_origin";
  const site = fetchSite(request);
  return site === undefined || site === "same-origin" || site === "none" ? "own" : "foreign_origin";
}

/** Does this form post come from the console's own pages? Browsers say so in one header or the other. */
export function judgePost(request: FastifyRequest, console_url: string | null): Source {
  const site = fetchSite(request);
  if (site !== undefined) return site === "same-origin" ? "own" : "foreign_origin";
  const { origin, host } = request.headers;
  if (origin === undefined) return "own";
  const from = URL.canParse(origin) ? new URL(origin).host : null;
  const known = [host?.toLowerCase(), console_url === null ? undefined : new URL(console_url).host];
  return from !== null && known.includes(from) ? "own" : "foreign_origin";
}

/** A person followed a link from another site: the strict cookie stayed behind. */
export function isArrival(request: FastifyRequest): boolean {
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
