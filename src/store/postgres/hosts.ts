/**
 * A database URL that names several hosts (`postgres://user@a:5432,b:5432/db`), of which one takes writes at a time: a
 * primary, and the standbys that may be promoted. They are asked in turn, from the one that was right last.
 */
import { SvcError } from "../../kernel/errors.ts";
import { sqlState } from "./failures.ts";
import { timeLimit } from "./time-limit.ts";

const URL_PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s;

/** How long one of several may take before the next is asked: all of them within the time that a caller has. */
const HOST_MS = 1_000;

/** One URL for each host. */
export function hostsOf(url: string): string[] {
  const [, before, hosts, after] = URL_PARTS.exec(url) ?? [];
  return hosts?.includes(",") ? hosts.split(",").map((host) => `${before}${host}${after}`) : [url];
}

/** By URL, the place of the host that was right last. */
const RIGHT = new Map<string, number>();

/** `open` must reject where the host is a standby (`NotPrimary`). */
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
  // What a primary says counts for more than one that is out of reach, and that for more than a standby's word.
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
