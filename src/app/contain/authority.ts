/**
 * What lends or spares an agent something and can be taken back: one row a kind. What names those who are
 * contained is revoked; what covers more people than them is left to a person, and listed.
 */
import { revokeUnit } from "../../engine/approvals/delegations.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { Principal } from "../../model/roles.ts";
import type { Unit } from "../../store/port.ts";
import type { App } from "../app.ts";
import type { ContainReport } from "./report.ts";
import { all, type Scope } from "./scope.ts";

export type WiderLine = ContainReport["wider"][number];

export interface FoundAuthority {
  /** Ids of those that name the contained. */
  names: string[];
  wider: WiderLine[];
}

interface Revocable {
  find(app: Pick<App, "core">, scope: Scope, actors: readonly string[]): Promise<FoundAuthority>;
  revoke(app: Pick<App, "core">, by: Principal, id: string): Unit<{ records: LedgerRecord[] }>;
}

/** In the order in which they are taken back. */
export const REVOCABLE: { [kind in "delegations"]: Revocable } = {
  delegations: {
    /** Lent to it or by it: both ends are named, so none is wider. */
    async find({ core }, _scope, actors) {
      const contained = new Set(actors);
      const now = core.env.now();
      const names: string[] = [];
      for await (const { doc } of all(core.store, "delegations", { tag: ["active"] }))
        if (now < doc.expires_ms && (contained.has(doc.to) || contained.has(doc.from))) names.push(doc.id);
      return { names, wider: [] };
    },
    revoke: ({ core }, by, id) => revokeUnit(core, by, id),
  },
};

export type RevocableKind = keyof typeof REVOCABLE;
