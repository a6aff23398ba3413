/**
 * An upstream's address and credentials, kept out of what is said about it: a server that answers "cannot POST
 * /mcp/<token>" must not put its token into a log line or on the ledger.
 */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";

const MASK = "[secret]";
/** Shorter pieces would be found in every other word. */
const SHORTEST = 4;

export function hidingSecrets(spec: UpstreamSpec): (text: string) => string {
  const secrets = "url" in spec ? remoteSecrets(spec.url, spec.headers) : Object.values(spec.env);
  const told = [...new Set(secrets.filter((text) => text.length >= SHORTEST).map(escaped))];
  if (told.length === 0) return (text) => text;
  // Longest first, so that a piece of another does not leave the rest of it behind.
  const spelled = new RegExp(told.sort((a, b) => b.length - a.length).join("|"), "gi");
  return (text) => text.replace(spelled, MASK);
}

/** The path as a whole and in pieces, the query's values, and what the headers carry behind a scheme. */
function remoteSecrets(url: string, headers: Readonly<Record<string, string>>): string[] {
  const { pathname, searchParams } = new URL(url);
  const pieces = [pathname, ...pathname.split("/"), ...searchParams.values(), ...Object.values(headers)];
  return pieces.flatMap((piece) => [piece, decoded(piece), piece.replace(/^\w+ /, "")]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
