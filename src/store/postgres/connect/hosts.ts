/**
 * A database URL with several hosts (`postgres://user@a:5432,b:5432/db`): a primary, which accepts writes, and standbys
 * that can be promoted. Tries the hosts in turn, starting with the last known primary.
 */
import { SvcError } from "../../../kernel/errors.ts";
import { sqlState } from "./failures.ts";
import { timeLimit } from "./time-limit.ts";

const URL_PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s;

/** Timeout per host if there are several, so that all of them fit into the caller's time. */
const HOST_MS = 1_000;

/** Returns one URL per host. */
export function hostsOf(url: string): string[] {
  const [, before, hosts, after] = URL_PARTS.exec(url) ?? [];
  return hosts?.includes(",") ? hosts.split(",").map((host) => `${before}${host}${after}`) : [url];
}

/** The index of the last known primary, by URL. */
const RIGHT = new Map<string, number>();

/** Calls `open` for each host until one succeeds. `open` must reject for a standby (`NotPrimary`). */
export async function firstPrimary<T>(
  url: string,
  hosts: readonly string[],
  signal: AbortSignal,
  open: (one: string, signal: AbortSignal) => Promise<T>,
  host_ms = HOST_MS,
): Promise<T> {
  const from = RIGHT.get(url) ?? 0;
  const problems: unknown[] = [];
  for (let i = 0; i < hosts.length; i++) {
    const at = (from + i) % hosts.length;
    const limit = timeLimit(host_ms);
    try {
      const found = await open(hosts[at]!, AbortSignal.any([signal, limit.signal]));
      RIGHT.set(url, at);
      return found;
    } catch (error) {
      problems.push(error);
    } finally {
      limit.clear();
    }
  }
  // Prefers the error of a primary, then that of an unreachable host, then that of a standby.
  throw problems.find(sqlState) ?? problems.find((error) => !(error instanceof NotPrimary)) ?? problems[0];
}

export class NotPrimary extends SvcError {
  constructor() {
    super(
      "unavailable",
      "ledger unavailable: every host of the database URL is a standby; one has to be promoted",
    );
  }
}
