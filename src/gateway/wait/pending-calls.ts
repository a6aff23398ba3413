/**
 * Finds the run of a repeated call that waits for approval. A request belongs to one run, but the repeated call may
 * have another one: after a new session, after a restart, or with one run per call. Exactly the same call by the same
 * principal therefore continues in the run with an open or approved request.
 */

import type { CallerPrincipal } from "../../govern/roles.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { liveCallRequests } from "../../operations/documents.ts";
import { runFacts } from "../../operations/pipeline/access.ts";

interface Waiting {
  run_id: string;
  tool: string;
}

const KEPT_PRINCIPALS = 10_000;
/** How many requests of one principal are checked for each of its calls. */
const KEPT_CALLS = 100;

export class PendingCalls {
  private readonly app: ServiceApp;
  private readonly calls = new LruMap<string, Waiting[]>(KEPT_PRINCIPALS);

  constructor(app: ServiceApp) {
    this.app = app;
  }

  /** Forgets a principal's cached requests, so that the store is read again. */
  lookAgain(principal: CallerPrincipal): void {
    this.calls.delete(principal.id);
  }

  /** Another run with a valid request for this call. Undefined if there is none. */
  async runFor(
    { id }: CallerPrincipal,
    tool: string,
    args: JsonObject,
    own: string,
  ): Promise<string | undefined> {
    const known = this.calls.get(id) ?? (await this.recall(id));
    for (const waiting of known) {
      if (waiting.tool !== tool || waiting.run_id === own) continue;
      const found = await this.requestIn(waiting, args);
      if (found === "none") this.drop(id, waiting);
      if (found === "this") return waiting.run_id;
    }
    return undefined;
  }

  /** Remembers a call that was blocked until an approver decides. */
  note({ id }: CallerPrincipal, run_id: string, tool: string): void {
    const known = this.calls.get(id);
    // Without cached requests, the next call loads this one from the store.
    if (known === undefined || known.some((other) => other.run_id === run_id && other.tool === tool)) return;
    this.calls.set(id, [{ run_id, tool }, ...known].slice(0, KEPT_CALLS));
  }

  private drop(id: string, gone: Waiting): void {
    const known = this.calls.get(id) ?? [];
    this.calls.set(
      id,
      known.filter((one) => one !== gone),
    );
  }

  private async requestIn({ run_id, tool }: Waiting, args: JsonObject): Promise<"this" | "others" | "none"> {
    const facts = await runFacts(this.app, run_id);
    if (facts === undefined) return "none";
    const good = (await liveCallRequests(this.app, run_id)).filter((request) => request.tool === tool);
    if (good.length === 0) return "none";
    const hash = keyedHash(facts.salt, args);
    return good.some(({ args_hash }) => args_hash === hash) ? "this" : "others";
  }

  private async recall(id: string): Promise<Waiting[]> {
    const seen = new Map<string, Waiting>();
    for (const doc of await liveCallRequests(this.app)) {
      if (doc.internal.principal !== id) continue;
      seen.set(`${doc.run_id} ${doc.tool}`, { run_id: doc.run_id, tool: doc.tool });
    }
    const found = [...seen.values()].slice(0, KEPT_CALLS);
    this.calls.set(id, found);
    return found;
  }
}
