/**
 * Host names as the rules see them: one spelling for each host, so that a trailing dot, capitals,
 * full-width digits or an octal address cannot be a second name that the rules do not know.
 */
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import { invalid } from "../kernel/errors.ts";
import { compileGlob, isGlob } from "../kernel/glob.ts";

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

/** The one spelling of a URL's hostname: no brackets, no trailing dot, lower case. */
export function plainHost(hostname: string): string {
  const bare = hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname;
  return bare.toLowerCase().replace(/\.+$/, "");
}

/** Reads a host that stands alone (an SMTP setting) as a URL would read it; undefined where it is none. */
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

/** Host globs of the allow list. `*.example.com` does not cover `example.com` itself. */
export function compileAllow(patterns: readonly string[]): HostMatcher {
  const matchers = patterns.map(compilePattern);
  return (host) => matchers.some((matches) => matches(host));
}

function compilePattern(source: string): HostMatcher {
  const text = source.trim();
  const plain = isGlob(text) ? asciiPattern(plainHost(text)) : parseHost(text);
  // One colon is a port; an IPv6 address has more, and none after its bracket.
  const notHost = /[/\\@#\s]|\]:/.test(text) || text.split(":").length === 2;
  if (plain === undefined || plain === "" || notHost) {
    throw invalid(
      `egress.allow: ${JSON.stringify(source)} is not a host pattern; write a host such as hooks.example.com or *.example.com, without scheme, port or path`,
    );
  }
  const glob = compileGlob(plain);
  // `10.0.0.*` is meant for addresses; without this it would also let `10.0.0.evil.example` out.
  const addressOnly = /^[0-9.*?{},]+$/.test(plain) && /[0-9]/.test(plain);
  return (host) => glob.test(host) && (!addressOnly || isIP(host) !== 0);
}

/** International names are compared in their ASCII form, which is what a URL's hostname holds. */
function asciiPattern(pattern: string): string {
  if (/^[\x21-\x7e]*$/.test(pattern)) return pattern;
  return pattern
    .split(".")
    .map((label) => (/[*?{}]/.test(label) ? label : domainToASCII(label) || label))
    .join(".");
}
