/** Taking grants in hand for a call, and spending one: inside the unit of the intent, so that the last use is used once. */
import type { GrantDoc } from "../../model/grant.ts";
import { hasRole, type Principal } from "../../model/roles.ts";
import type { Tx } from "../../store/port.ts";
import { authoritiesFor } from "../approvals/authority.ts";
import type { Core } from "../core.ts";
import type { Facts } from "../decide/facts.ts";
import type { GrantInHand, GrantUse } from "./coverage.ts";
import { namedGrants, removeGrant } from "./index-of.ts";

/** The grants that name the tool and the actor of a call, each with what its giver may decide now. */
export function grantsFor(
  core: Core,
  tx: Tx,
  { tool, run, now, policy }: Pick<Facts, "tool" | "run" | "now" | "policy">,
): GrantInHand[] {
  const { four_eyes } = policy.approvals;
  const today = core.today ?? (() => null);
  return namedGrants(tx, tool, run.actor, now).flatMap((id) => {
    const doc = tx.get("grants", id);
    const giver = doc === undefined ? null : giverNow(core, doc);
    if (doc === undefined || giver === null) return [];
    const delegations = doc.internal.delegations.flatMap((one) => tx.get("delegations", one) ?? []);
    const authorities = authoritiesFor({ tool, actor: run.actor }, giver, {
      four_eyes,
      now,
      delegations,
      today,
    });
    return [{ doc, admin: hasRole(giver, "admin"), authorities }];
  });
}

/** Its giver as of now; null once the key, the role or the issuer behind it no longer counts. */
export function giverNow(core: Core, { internal, by }: GrantDoc): Principal | null {
  const { giver, at_the_data } = internal;
  if (!at_the_data) return core.today?.(giver) ?? null;
  const none = { groups: giver.groups, tenant: null, max_permissions: [], allow_observe: false };
  return { id: giver.principal, name: by, roles: ["admin"], ...none };
}

export function spendGrant(tx: Tx, { id, use, spent }: GrantUse): void {
  const grant = tx.get("grants", id);
  if (grant === undefined || grant.uses !== use - 1) throw new Error(`grant ${id} is not there to be used`);
  const used: GrantDoc = { ...grant, uses: use, spent };
  tx.put("grants", id, used);
  if (used.uses >= used.max_uses) removeGrant(tx, used);
}
