/**
 * Calls of session-less clients that wait for a person. Such a client has no session to carry its run, and
 * each of its requests has a run of its own; but a request for approval speaks for one run, so the very
 * same call asked again goes on in the run that waits, instead of opening a new request for ever.
 */
import { canonical } from "../kernel/canonical.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { JsonObject } from "../kernel/json.ts";
import { Lru } from "../kernel/lru.ts";
import type { BoundRun } from "./runs.ts";

const KEPT = 10_000;

export class WaitingCalls {
  private readonly runs = new Lru<string, BoundRun>(KEPT);

  key(principal: string, tool: string, args: JsonObject): string {
    return sha256Hex(canonical([principal, tool, args]));
  }

  get(key: string): BoundRun | undefined {
    return this.runs.get(key);
  }

  /** Remembers the run while its call waits, and forgets it with the answer. */
  note(key: string, run: BoundRun, waits: boolean): void {
    if (waits) this.runs.set(key, run);
    else this.runs.delete(key);
  }
}
