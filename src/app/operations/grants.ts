/** Grants: giving one, listing, taking back, and seeing what one would have covered. */
import * as z from "zod";
import {
  checkGivingUnit,
  type Giver,
  giveUnit,
  revokeGrantUnit,
  unknownGrant,
} from "../../engine/grants/give.ts";
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type GrantDoc, grantView } from "../../model/grant.ts";
import { boundTo, hasRole } from "../../model/roles.ts";
import type { Unit } from "../../port/store.ts";
import { announce } from "../app.ts";
import { delegationsTo } from "../door/access.ts";
import { type Caller, operation } from "../door/operation.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { giveInputOf, grantInput, previewInput, termsOf } from "./grants/grant-input.ts";
import { grantPreview } from "./grants/grant-preview.ts";
import { givenId, noFields, nullable, paging } from "./schemas.ts";
import { captureFeature, ruling } from "./simulate.ts";

const grantShape = z.strictObject({
  id: z.string(),
  match: z.strictObject({
    tool: z.string(),
    actor: z.string(),
    tenant: nullable(z.string()),
    environment: nullable(z.string()),
  }),
  rules: z.array(z.string()),
  when: z.array(z.strictObject({ path: z.string(), op: z.string(), value: z.unknown().optional() })),
  args_only: z.array(z.string()).optional(),
  max_uses: z.int(),
  budget: nullable(z.strictObject({ path: z.string(), max: z.number() })),
  irreversible: z.boolean(),
  reason: z.string(),
  by: z.string(),
  created_ms: z.int(),
  expires_ms: z.int(),
  uses: z.int(),
  spent: z.number(),
  revoked_ms: nullable(z.int()),
});

const shown = ({ principal }: Caller, grant: GrantDoc) => grantView(grant, hasRole(principal, "approver"));

async function giverOf({ app, principal, at_the_data }: Caller): Promise<Giver> {
  const delegations = await delegationsTo(app, principal.name);
  return { principal, at_the_data: at_the_data === true, delegations, today: app.today };
}

/** What a caller that is bound to a tenant grants holds within it; more would be wider than what it may decide. */
function ofTenant<T extends { match: { tenant?: string | null | undefined } }>(
  { principal }: Caller,
  input: T,
): T {
  const tenant = boundTo(principal);
  if (tenant === null) return input;
  if ((input.match.tenant ?? tenant) !== tenant)
    throw invalid(
      `match.tenant: this credential is bound to the tenant ${tenant}, and grants for no other; leave it out or write ${tenant}`,
    );
  return { ...input, match: { ...input.match, tenant } };
}

/** Whatever its giver may not give is refused when the unit is made. */
async function giving<T>(caller: Caller, input: z.output<typeof grantInput>, unit: Giving<T>): Promise<T> {
  const { core } = caller.app;
  const made = unit(core, await giverOf(caller), giveInputOf(ofTenant(caller, input)));
  return core.store.transact(made);
}

type Giving<T> = (...given: Parameters<typeof giveUnit>) => Unit<T>;

/** For those who decide something else first: what could not be given must not be half of what they did. */
export const checkGrant = operation({
  id: "check_grant",
  summary: "Refuse what giving this grant would refuse, and give nothing",
  role: "approver",
  within_tenant: true,
  input: grantInput,
  output: noFields,
  errors: { conflict: "too many grants for tools and actors like these" },
  async run(caller, input) {
    await giving(caller, input, checkGivingUnit);
    return {};
  },
});

export const createGrant = operation({
  id: "create_grant",
  summary: "Approve calls like these ahead: for a while, so many times, and only what you could decide alone",
  role: "approver",
  within_tenant: true,
  input: grantInput,
  output: grantShape,
  errors: { conflict: "too many grants for tools and actors like these" },
  async run(caller, input) {
    const { core } = caller.app;
    const { grant, records } = await giving(caller, input, giveUnit);
    announce(core.listeners, records);
    return shown(caller, grant);
  },
});

export const listGrants = operation({
  id: "list_grants",
  summary: "List grants, newest first; the values of conditions are shown to approvers only",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject(paging),
  output: z.strictObject({ grants: z.array(grantShape), next_cursor: nullable(z.string()) }),
  async run(caller, { limit = LIMITS.page_default, cursor }) {
    const rows = await caller.app.core.store.list("grants", {
      order: "desc",
      limit: limit + 1,
      after: positionOf(cursor),
    });
    const { page, next } = cutPage(rows, limit);
    const grants = page.map(({ doc }) => shown(caller, doc));
    return { grants, next_cursor: next };
  },
});

export const revokeGrant = operation({
  id: "revoke_grant",
  summary: "Take a grant back; its giver or an admin",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({ grant_id: givenId("grt_<uuid>") }),
  output: grantShape,
  errors: { not_found: "unknown grant", conflict: "already revoked" },
  async run(caller, { grant_id }) {
    const { core } = caller.app;
    // Through the store as this caller sees it: another tenant's grant is not there.
    if ((await core.store.get("grants", grant_id)) === undefined) throw unknownGrant(grant_id);
    const { grant, records } = await core.store.transact(revokeGrantUnit(core, caller.principal, grant_id));
    announce(core.listeners, records);
    return shown(caller, grant);
  },
});

export const previewGrant = operation({
  id: "preview_grant",
  summary: "Which of the last captured calls a grant would have covered, and which rules asked for them",
  role: "approver",
  within_tenant: true,
  input: previewInput,
  output: z.strictObject({
    calls: z.int(),
    covered: z.array(
      z.strictObject({
        run_id: z.string(),
        step: nullable(z.int()),
        tool: z.string(),
        actor: z.string(),
        captured_ms: z.int(),
        decision: ruling,
        rules: z.array(z.string()),
      }),
    ),
    rules: z.array(z.string()),
  }),
  feature: captureFeature,
  errors: { not_found: "capture is off" },
  async run(caller, input) {
    return grantPreview(caller.app, await giverOf(caller), termsOf(ofTenant(caller, input)), caller.signal);
  },
});
