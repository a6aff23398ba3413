/**
 * Against a browser that was tricked: a page that reaches this machine under a name of its own (DNS
 * rebinding), or that simply posts here. A loopback listener answers only to its own names, and a request
 * that a browser sends from elsewhere is refused wherever it listens.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isLoopbackHost } from "../../config/loopback.ts";
import type { Settings } from "../../config/settings.ts";
import { forbidden } from "../../kernel/errors.ts";

export type OriginGuard = (headers: IncomingHttpHeaders) => void;

export function originGuard({ listen, console_url }: Pick<Settings, "listen" | "console_url">): OriginGuard {
  const local = isLoopbackHost(listen.host);
  const own = console_url === null ? null : new URL(console_url).hostname;
  const known = (hostname: string) => isLoopbackHost(hostname) || hostname === own;
  /** The Host that was found good last: nearly every request has it, and an address is dear to parse. */
  let good: string | undefined;
  return ({ host, origin }) => {
    if (origin === undefined && host !== undefined && host === good) return;
    const asked = hostnameOf(`http://${host ?? ""}`);
    if (asked === null) throw forbidden("the Host header is missing or not valid", "origin_refused");
    if (local && !known(asked))
      throw forbidden("this Host is not one of this gateway's names", "origin_refused");
    good = host;
    if (origin === undefined) return;
    const from = hostnameOf(origin);
    if (from === null || !(known(from) || (!local && from === asked)))
      throw forbidden("this Origin is not allowed", "origin_refused");
  };
}

function hostnameOf(url: string): string | null {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.hostname === "") return null;
  return parsed.hostname.replace(/^\[|\]$/g, "");
}
