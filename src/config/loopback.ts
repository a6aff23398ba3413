/** Checks if only this machine can reach a listening address. */
import { isIP } from "node:net";

export function isLoopbackHost(host: string): boolean {
  const plain = host.replace(/^\[|\]$/g, "").toLowerCase();
  if (plain === "localhost" || plain === "::1") return true;
  return isIP(plain) === 4 && plain.startsWith("127.");
}
