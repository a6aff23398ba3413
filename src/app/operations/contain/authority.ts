/**
 * What lends or spares an agent something and can be taken back: one row a kind. What names those who are
 * contained is revoked; what covers more people than them is left to a person, and listed.
 */
import { revokeUnit } from "../../../engine/approvals/delegations.ts";
import { revokeGrantUnit } from "../../../engine/grants/give.ts";
import { revokePlanUnit } from "../../../engine/plans/decide-plan.ts";
import { globMatches } from "../../../kernel/glob.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { isLive } from "../../../model/grant.ts";
import type { Principal } from "../../../model/roles.ts";
import { allRows } from "../../../port/pages.ts";
import type { Unit } from "../../../port/store.ts";
import type { App } from "../../app.ts";
import type { ContainReport } from "./report.ts";
import { isInScope, type Scope } from "./scope.ts";

export type WiderLine = ContainReport["wider"][number];

interface FoundAuthority {
  /** Ids of those that name the contained. */
  names: string[];
  wider: WiderLine[];
}

interface Revocable {
  find(app: Pick<App, "core">, scope: Scope, actors: readonly string[]): Promise<FoundAuthority>;
  revoke(app: Pick<App, "core">, by: Principal, id: string): Unit<{ records: LedgerRecord[] }>;
}

/** In the order in which they are taken back. */
export const REVOCABLE: { [kind in "plans" | "delegations" | "grants"]: Revocable } = {
  plans: {
    /** A plan is one agent's own. */
    async find({ core }, scope) {
      const names: string[] = [];
      for await (const { doc } of allRows(core.store, "plans", { tag: ["pending", "approved"] }))
        if (isInScope(scope, doc)) names.push(doc.id);
      return { names, wider: [] };
    },
    revoke: ({ core }, by, id) => revokePlanUnit(core, by, id),
  },
  delegations: {
    /** Lent to it or by it: both ends are named, so none is wider. */
    async find({ core }, _scope, actors) {
      const contained = new Set(actors);
      const now = core.env.now();
      const names: string[] = [];
      for await (const { doc } of allRows(core.store, "delegations", { tag: ["active"] }))
        if (now < doc.expires_ms && (contained.has(doc.to) || contained.has(doc.from))) names.push(doc.id);
      return { names, wider: [] };
    },
    revoke: ({ core }, by, id) => revokeUnit(core, by, id),
  },
  grants: {
    /**
     * One whose glob covers others, too, is theirs as much: it is left to a person. So is one that reaches beyond the
     * tenant.
     */
    async find({ core }, scope, actors) {
      const now = core.env.now();
      const found: FoundAuthority = { names: [], wider: [] };
      for await (const { doc } of allRows(core.store, "grants")) {
        if (!isLive(doc, now) || !mayMeet(scope, doc.match.tenant)) continue;
        const { actor, tenant } = doc.match;
        const given = !doc.internal.at_the_data && actors.includes(doc.by);
        if (actor === scope.actor || actors.includes(actor) || (given && isInside(scope, tenant)))
          found.names.push(doc.id);
        else if (given)
          found.wider.push({
            kind: "grant",
            id: doc.id,
            covers: `given by ${doc.by}, ${tenantWords(tenant)}`,
          });
        else if (actors.some((name) => globMatches(actor, name)))
          found.wider.push({ kind: "grant", id: doc.id, covers: `actor ${actor}` });
      }
      return found;
    },
    revoke: ({ core }, by, id) => revokeGrantUnit(core, by, id),
  },
};

/** Whether a grant for these tenants can be about those that are contained. */
function mayMeet({ tenant }: Scope, granted: string | null): boolean {
  return tenant === null || granted === null || granted === tenant || globMatches(tenant, granted);
}

/** Whether a grant for these tenants is about no others than those that are contained. */
function isInside({ tenant }: Scope, granted: string | null): boolean {
  return tenant === null || (granted !== null && (granted === tenant || globMatches(tenant, granted)));
}

const tenantWords = (tenant: string | null): string =>
  tenant === null ? "every tenant" : `tenant ${tenant}`;

export type RevocableKind = keyof typeof REVOCABLE;
