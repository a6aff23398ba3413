/**
 * Kinds of authority that a containment revokes, one row each. Authority of the contained actors alone is revoked.
 * Authority that also covers other actors is listed for an admin to decide.
 */

import { revokeUnit } from "../../govern/approvals/delegations.ts";
import { isExpired } from "../../govern/expiry.ts";
import { revokeGrantUnit } from "../../govern/grants/give.ts";
import { isGrantUsable } from "../../govern/grants/grant.ts";
import { revokePlanUnit } from "../../govern/plans/decide-plan.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { UnitOfWork } from "../../govern/port/store.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ServiceApp } from "../app.ts";
import type { ContainReport } from "./report.ts";
import { type ContainmentScope, isInScope } from "./scope.ts";

export type WiderAuthority = ContainReport["wider"][number];

interface FoundAuthority {
  /** Ids of the entries that concern only the contained actors. */
  names: string[];
  wider: WiderAuthority[];
}

interface Revocable {
  find(
    app: Pick<ServiceApp, "core">,
    scope: ContainmentScope,
    actors: readonly string[],
  ): Promise<FoundAuthority>;
  revoke(
    app: Pick<ServiceApp, "core">,
    by: CallerPrincipal,
    id: string,
  ): UnitOfWork<{ records: LedgerRecord[] }>;
}

/** In the order of revocation. */
export const REVOCABLE_AUTHORITY: { [kind in "plans" | "delegations" | "grants"]: Revocable } = {
  plans: {
    /** A plan belongs to one agent. */
    async find({ core }, scope) {
      const names: string[] = [];
      for await (const { doc } of allRows(core.store, "plans", { tag: ["pending", "approved"] }))
        if (isInScope(scope, doc)) names.push(doc.id);
      return { names, wider: [] };
    },
    revoke: ({ core }, by, id) => revokePlanUnit(core, by, id),
  },
  delegations: {
    /** Delegations to or from a contained actor. Both ends are names, so none covers other actors. */
    async find({ core }, _scope, actors) {
      const contained = new Set(actors);
      const now = core.env.now();
      const names: string[] = [];
      for await (const { doc } of allRows(core.store, "delegations", { tag: ["active"] }))
        if (!isExpired(doc, now) && (contained.has(doc.to) || contained.has(doc.from))) names.push(doc.id);
      return { names, wider: [] };
    },
    revoke: ({ core }, by, id) => revokeUnit(core, by, id),
  },
  grants: {
    /**
     * A grant whose glob also covers other actors is listed, not revoked. So is a grant that reaches beyond the tenant.
     */
    async find({ core }, scope, actors) {
      const now = core.env.now();
      const found: FoundAuthority = { names: [], wider: [] };
      for await (const { doc } of allRows(core.store, "grants")) {
        if (!isGrantUsable(doc, now) || !mayMeet(scope, doc.match.tenant)) continue;
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

/** Whether a grant for these tenants can apply to the contained actors. */
function mayMeet({ tenant }: ContainmentScope, granted: string | null): boolean {
  return tenant === null || granted === null || granted === tenant || globMatches(tenant, granted);
}

/** Whether a grant for these tenants stays within the contained tenants. */
function isInside({ tenant }: ContainmentScope, granted: string | null): boolean {
  return tenant === null || (granted !== null && (granted === tenant || globMatches(tenant, granted)));
}

const tenantWords = (tenant: string | null): string =>
  tenant === null ? "every tenant" : `tenant ${tenant}`;

export type RevocableKind = keyof typeof REVOCABLE_AUTHORITY;
