/**
 * Masks an upstream's URL and credentials in texts about it. A server that answers "cannot POST /mcp/<token>" must not
 * put its token into a log line or the ledger.
 */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";

const MASK = "[secret]";
/** Shorter values would match parts of ordinary words. */
const SHORTEST = 4;

export function createSecretMask(spec: UpstreamSpec): (text: string) => string {
  const secrets = "url" in spec ? remoteSecrets(spec.url, spec.headers) : Object.values(spec.env);
  const told = [...new Set(secrets.filter((text) => text.length >= SHORTEST).map(escaped))];
  if (told.length === 0) return (text) => text;
  // Longest first, so that a shorter secret does not leave the rest of a longer one visible.
  const spelled = new RegExp(told.sort((a, b) => b.length - a.length).join("|"), "gi");
  return (text) => text.replace(spelled, MASK);
}

/** The path and its segments, the query values, and the header values with and without their scheme. */
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
