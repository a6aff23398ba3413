/**
 * Normalizes host names. Each host has one form, so that a trailing dot, capitals, full-width digits or an octal
 * address cannot bypass the rules.
 */
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { invalidError } from "../kernel/errors.ts";
import { compileGlob, isGlob } from "../kernel/text/glob.ts";

const METADATA_NAMES = [
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "metadata.tencentyun.com",
  "metadata.platformequinix.com",
  "metadata.packet.net",
  "metadata.ec2.internal",
  "instance-data",
  "instance-data.ec2.internal",
  "rancher-metadata",
];
const LOOPBACK_NAMES = ["localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"];

/** Normalizes a URL's hostname: no brackets, no trailing dot, lower case. */
export function plainHost(hostname: string): string {
  const bare = hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname;
  return bare.toLowerCase().replace(/(?<!\.)\.+$/, "");
}

/** Parses a bare host (an SMTP setting) like the host of a URL. Returns undefined if it is not a valid host. */
export function parseHost(text: string): string | undefined {
  if (text === "" || /[\s/\\?#@%[\]]/.test(text.replace(/^\[|\]$/g, ""))) return undefined;
  const bracketed = text.includes(":") && !text.startsWith("[") ? `[${text}]` : text;
  try {
    const url = new URL(`http://${bracketed}/`);
    return url.port === "" && url.hostname !== "" ? plainHost(url.hostname) || undefined : undefined;
  } catch {
    return undefined;
  }
}

const isOrUnder = (host: string, name: string) => host === name || host.endsWith(`.${name}`);

export function isMetadataName(host: string): boolean {
  return METADATA_NAMES.some((name) => isOrUnder(host, name));
}

export function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAMES.some((name) => isOrUnder(host, name));
}

export type HostMatcher = (host: string) => boolean;

/** Compiles the host globs of the allow list. `*.example.com` does not cover `example.com` itself. */
export function compileAllow(patterns: readonly string[]): HostMatcher {
  const matchers = patterns.map(compilePattern);
  return (host) => matchers.some((matches) => matches(host));
}

function compilePattern(source: string): HostMatcher {
  const text = source.trim();
  const plain = isGlob(text) ? asciiPattern(plainHost(text)) : parseHost(text);
  // One colon means a port. An IPv6 address has more, and none after its bracket.
  const notHost = /[/\\@#\s]|\]:/.test(text) || text.split(":").length === 2;
  if (plain === undefined || plain === "" || notHost) {
    throw invalidError(
      `egress.allow: ${JSON.stringify(source)} is not a host pattern; write a host such as hooks.example.com or *.example.com, without scheme, port or path`,
    );
  }
  const glob = compileGlob(plain);
  // `10.0.0.*` is a pattern for addresses. Without this check it would also allow `10.0.0.evil.example`.
  const addressOnly = /^[0-9.*?{},]+$/.test(plain) && /[0-9]/.test(plain);
  return (host) => glob.test(host) && (!addressOnly || isIP(host) !== 0);
}

/** Converts international names to ASCII, the form in a URL's hostname. */
function asciiPattern(pattern: string): string {
  if (/^[\x21-\x7e]*$/.test(pattern)) return pattern;
  return pattern
    .split(".")
    .map((label) => (/[*?{}]/.test(label) ? label : domainToASCII(label) || label))
    .join(".");
}
