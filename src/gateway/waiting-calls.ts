/**
 * Calls that wait for a person. A request for approval speaks for one run, and the run that the next call would
 * belong to may be another by then: a session was opened anew, the gateway restarted, each call has its own. So
 * the very same call by the same principal goes on in the run whose request is open or approved.
 */
import type { App } from "../app/app.ts";
import { runFacts } from "../app/door/access.ts";
import { keyedHash } from "../kernel/hash.ts";
import type { JsonObject } from "../kernel/json.ts";
import { Lru } from "../kernel/lru.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../model/approval.ts";
import type { Principal } from "../model/roles.ts";

interface Waiting {
  run_id: string;
  tool: string;
}

const KEPT_PRINCIPALS = 10_000;
/** More requests of one principal than these are not gone through for each of its calls. */
const KEPT_CALLS = 100;
const LOOKED_AT = 1_000;
const GOOD = ["pending", "escalated", "approved"] as const;

export class WaitingCalls {
  private readonly app: App;
  private readonly calls = new Lru<string, Waiting[]>(KEPT_PRINCIPALS);

  constructor(app: App) {
    this.app = app;
  }

  /** What waited before this process, or this session, began is read once more. */
  lookAgain(principal: Principal): void {
    this.calls.delete(principal.id);
  }

  /** The run to go on in, where another than the call's own has a request for it that is still good. */
  async runFor({ id }: Principal, tool: string, args: JsonObject, own: string): Promise<string | undefined> {
    const known = this.calls.get(id) ?? (await this.recall(id));
    for (const waiting of known) {
      if (waiting.tool !== tool || waiting.run_id === own) continue;
      const found = await this.requestIn(waiting, args);
      if (found === "none") this.drop(id, waiting);
      if (found === "this") return waiting.run_id;
    }
    return undefined;
  }

  /** A call was blocked until a person decides. */
  note({ id }: Principal, run_id: string, tool: string): void {
    const known = this.calls.get(id);
    // Where nothing is known yet, the first look finds it in the store.
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
    const { core } = this.app;
    const facts = await runFacts(this.app, run_id);
    if (facts === undefined) return "none";
    const query = { owner: run_id, tag: GOOD, limit: LOOKED_AT };
    const rows = await core.store.list("approvals", query);
    const good = rows.map(({ doc }) => doc).filter((doc) => doc.tool === tool && isGood(doc, core.env.now()));
    if (good.length === 0) return "none";
    const hash = keyedHash(facts.salt, args);
    return good.some(({ args_hash }) => args_hash === hash) ? "this" : "others";
  }

  private async recall(id: string): Promise<Waiting[]> {
    const { core } = this.app;
    const rows = await core.store.list("approvals", { tag: GOOD, order: "desc", limit: LOOKED_AT });
    const seen = new Map<string, Waiting>();
    for (const { doc } of rows) {
      if (doc.internal.principal !== id || !isGood(doc, core.env.now())) continue;
      seen.set(`${doc.run_id} ${doc.tool}`, { run_id: doc.run_id, tool: doc.tool });
    }
    const found = [...seen.values()].slice(0, KEPT_CALLS);
    this.calls.set(id, found);
    return found;
  }
}

function isGood({ kind, status, expires_ms }: ApprovalDoc, now: number): boolean {
  return kind === "call" && expires_ms > now && (status === "approved" || OPEN_APPROVAL.has(status));
}
