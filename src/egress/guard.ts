/**
 * Decides where the service can connect. Checks the text of a URL first, so that a refused host causes no lookup. Then
 * checks every address that the name resolves to at connect time, so that a changing DNS response changes nothing.
 */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { classifyAddress } from "./address.ts";
import {
  compileAllow,
  type HostMatcher,
  isLoopbackName,
  isMetadataName,
  parseHost,
  plainHost,
} from "./host.ts";
import { type EgressRefusal, EgressRefusedError, egressRefusal, type RuleName } from "./refusal.ts";
import type { EgressSettings } from "./settings.ts";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

export type HostLookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

const defaultLookup: HostLookup = (hostname) => systemLookup(hostname, { all: true, verbatim: true });

export class EgressGuard {
  private readonly allows: HostMatcher | null;
  private readonly blockPrivate: boolean;
  private readonly region: string | null;
  private readonly literal: ReadonlySet<string>;
  private readonly lookup: HostLookup;

  constructor(settings: EgressSettings, lookup: HostLookup = defaultLookup) {
    this.allows = settings.allow === undefined ? null : compileAllow(settings.allow);
    this.blockPrivate = settings.block_private;
    this.region = settings.region ?? null;
    this.literal = new Set((settings.literal ?? []).map((host) => parseHost(host) ?? host));
    this.lookup = lookup;
  }

  refuse(rule: RuleName, host: string, detail?: string): EgressRefusal {
    return egressRefusal(rule, host, this.region, detail);
  }

  /** Parses a URL and checks everything that its text shows. */
  readUrl(text: string | URL): { url: URL } | { refused: EgressRefusal } {
    let url: URL;
    try {
      url = new URL(text);
    } catch {
      return { refused: this.refuse("url", "the destination") };
    }
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      return { refused: this.refuse("scheme", plainHost(url.hostname) || url.protocol) };
    }
    const host = plainHost(url.hostname);
    if (url.username !== "" || url.password !== "") return { refused: this.refuse("userinfo", host) };
    const refused = this.judgeHost(host);
    return refused === null ? { url } : { refused };
  }

  /** Checks a normalized host without a lookup. */
  judgeHost(host: string): EgressRefusal | null {
    if (host === "") return this.refuse("url", "the destination");
    if (this.literal.has(host)) return this.judgeAllowed(host);
    if (isMetadataName(host)) return this.refuse("metadata", host);
    if (isIP(host) !== 0) {
      const refused = this.judgeAddress(host, host);
      // The metadata rule comes first: it overrides the allow list.
      if (refused?.rule === "metadata") return refused;
      return this.judgeAllowed(host) ?? refused;
    }
    const notAllowed = this.judgeAllowed(host);
    if (notAllowed !== null) return notAllowed;
    return this.blockPrivate && isLoopbackName(host) ? this.refuse("private", host, "loopback") : null;
  }

  private judgeAllowed(host: string): EgressRefusal | null {
    return this.allows === null || this.allows(host) ? null : this.refuse("allow", host);
  }

  private judgeAddress(host: string, address: string): EgressRefusal | null {
    if (this.literal.has(address)) return null;
    const { kind, range } = classifyAddress(address);
    if (kind === "metadata") return this.refuse("metadata", host);
    return kind === "private" && this.blockPrivate ? this.refuse("private", host, range) : null;
  }

  /** Resolves and checks every address of a host. One bad address rejects the host. */
  async resolve(hostname: string): Promise<readonly ResolvedAddress[]> {
    const host = plainHost(hostname);
    const family = isIP(host);
    if (family !== 0) return [{ address: host, family }];
    let found: readonly ResolvedAddress[];
    try {
      found = await this.lookup(hostname);
    } catch (error) {
      throw new SvcError("delivery_failed", `cannot resolve ${host}: ${systemErrorCode(error)}`, {
        cause: error,
      });
    }
    if (found.length === 0) throw new SvcError("delivery_failed", `cannot resolve ${host}: no addresses`);
    if (this.literal.has(host)) return found;
    for (const { address } of found) {
      const refused = this.judgeAddress(host, address);
      if (refused !== null) throw new EgressRefusedError(refused);
    }
    return found;
  }

  /** For `net.connect`: passes the checked addresses to the socket. */
  readonly connectLookup: LookupFunction = (hostname, options, callback) => {
    this.resolve(hostname).then(
      (found) => {
        const wanted = options.family === 4 || options.family === 6 ? options.family : 0;
        const usable = found.filter((entry) => wanted === 0 || entry.family === wanted);
        const first = usable[0];
        if (first === undefined) {
          callback(Object.assign(new Error(`no IPv${wanted} address`), { code: "ENOTFOUND" }), "");
        } else if (options.all) {
          callback(
            null,
            usable.map(({ address, family }) => ({ address, family })),
          );
        } else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, ""),
    );
  };
}

/** Returns a system error's code. Unlike the message, it repeats nothing of the request. */
export function systemErrorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : messageOf(error);
}
