/**
 * Protects against browsers that were tricked into calling the gateway or a stream, by DNS rebinding or by a plain cross-site post.
 * A loopback listener accepts only its own host names. A browser request from another origin is rejected on every
 * listener.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isLoopbackHost } from "../config/loopback.ts";
import type { LoadedSettings } from "../config/settings.ts";
import { forbiddenError } from "../kernel/errors.ts";

export type OriginGuard = (headers: IncomingHttpHeaders) => void;

export function originGuard({
  listen,
  console_url,
  gateway_url,
}: Pick<LoadedSettings, "listen" | "console_url" | "gateway_url">): OriginGuard {
  const local = isLoopbackHost(listen.host);
  const own = [console_url, gateway_url].flatMap((url) => (url === null ? [] : [new URL(url).hostname]));
  own.push(...listen.allowed_hosts.map((name) => name.toLowerCase()));
  const origins = listen.allowed_origins.map((url) => new URL(url).origin);
  const known = (hostname: string) => isLoopbackHost(hostname) || own.includes(hostname);
  /** The last accepted Host. Nearly every request repeats it, and parsing is expensive. */
  let good: string | undefined;
  return ({ host, origin }) => {
    if (origin === undefined && host !== undefined && host === good) return;
    const asked = hostnameOf(`http://${host ?? ""}`);
    if (asked === null) throw forbiddenError("the Host header is missing or not valid", "origin_refused");
    if (local && !known(asked))
      throw forbiddenError("this Host is not one of this gateway's names", "origin_refused");
    good = host;
    if (origin === undefined || origins.includes(origin)) return;
    const from = hostnameOf(origin);
    if (from === null || !(known(from) || (!local && from === asked)))
      throw forbiddenError("this Origin is not allowed", "origin_refused");
  };
}

function hostnameOf(url: string): string | null {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.hostname === "") return null;
  return parsed.hostname.replace(/^\[|\]$/g, "");
}
