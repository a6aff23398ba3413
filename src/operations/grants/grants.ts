/** Grants: create, list, revoke and preview. */
import * as z from "zod";
import {
  checkGrantUnit,
  type GrantGiver,
  giveGrantUnit,
  revokeGrantUnit,
  unknownGrant,
} from "../../govern/grants/give.ts";
import { type GrantDoc, grantView } from "../../govern/grants/grant.ts";
import type { UnitOfWork } from "../../govern/port/store.ts";
import { hasRole, tenantBinding } from "../../govern/roles.ts";
import { signatureSchema } from "../../govern/signing/payload.ts";
import { invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { announceRecords } from "../app.ts";
import { cutPage, positionOf } from "../cursor.ts";
import { delegationsTo } from "../pipeline/access.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { givenId, noFields, pagingFields } from "../schemas.ts";
import { checkGiven, withSigningLink } from "../signing/check-signature.ts";
import { captureFeature } from "../simulate/simulate.ts";
import { giveInputOf, grantInput, previewInput, termsOf } from "./grant-input.ts";
import { grantPreview, grantPreviewShape } from "./grant-preview.ts";

const grantShape = z.strictObject({
  id: z.string(),
  match: z.strictObject({
    tool: z.string(),
    actor: z.string(),
    tenant: nullableSchema(z.string()),
    environment: nullableSchema(z.string()),
  }),
  rules: z.array(z.string()),
  when: z.array(z.strictObject({ path: z.string(), op: z.string(), value: z.unknown().optional() })),
  args_only: z.array(z.string()).optional(),
  max_uses: z.int(),
  budget: nullableSchema(z.strictObject({ path: z.string(), max: z.number() })),
  irreversible: z.boolean(),
  reason: z.string(),
  by: z.string(),
  created_ms: z.int(),
  expires_ms: z.int(),
  uses: z.int(),
  spent: z.number(),
  revoked_ms: nullableSchema(z.int()),
});

const shown = ({ principal }: ApiCaller, grant: GrantDoc) => grantView(grant, hasRole(principal, "approver"));

async function giverOf({ app, principal, at_the_data }: ApiCaller): Promise<GrantGiver> {
  const delegations = await delegationsTo(app, principal.name);
  return { principal, at_the_data: at_the_data === true, delegations, today: app.today };
}

/** A tenant-bound caller can grant only within its tenant. */
function ofTenant<T extends { match: { tenant?: string | null | undefined } }>(
  { principal }: ApiCaller,
  input: T,
): T {
  const tenant = tenantBinding(principal);
  if (tenant === null) return input;
  if ((input.match.tenant ?? tenant) !== tenant)
    throw invalidError(
      `match.tenant: this credential is bound to the tenant ${tenant}, and cannot grant for another tenant; omit this field or set it to ${tenant}`,
    );
  return { ...input, match: { ...input.match, tenant } };
}

/** The transaction rejects a grant that exceeds its giver's authority. */
async function giving<T>(caller: ApiCaller, input: z.output<typeof grantInput>, unit: Giving<T>): Promise<T> {
  const { core } = caller.app;
  const made = unit(core, await giverOf(caller), giveInputOf(ofTenant(caller, input)));
  return core.store.transact(made);
}

type Giving<T> = (...given: Parameters<typeof giveGrantUnit>) => UnitOfWork<T>;

/**
 * For surfaces that decide a request and create a grant: check the grant first, so that neither happens without the
 * other.
 */
export const checkGrant = defineOperation({
  id: "check_grant",
  summary: "Check whether this grant could be given, without giving it",
  role: "approver",
  within_tenant: true,
  input: grantInput,
  output: noFields,
  errors: { conflict: "too many grants for tools and actors like these" },
  async run(caller, input) {
    await giving(caller, input, checkGrantUnit);
    return {};
  },
});

export const createGrant = defineOperation({
  id: "create_grant",
  summary:
    "Approve similar calls in advance: for a limited time and number of uses, within the authority that you have alone",
  role: "approver",
  within_tenant: true,
  input: grantInput.extend({ signature: signatureSchema.optional() }),
  output: grantShape,
  errors: { conflict: "too many grants for tools and actors like these" },
  async run(caller, { signature, ...input }) {
    const { app, principal } = caller;
    const { core } = app;
    const signed = await checkGiven(app, principal, signature);
    const { grant, records } = await withSigningLink(app, "grants", () =>
      giving(caller, input, (to, giver, terms) => giveGrantUnit(to, giver, { ...terms, signature: signed })),
    );
    announceRecords(core.listeners, records);
    return shown(caller, grant);
  },
});

export const listGrants = defineOperation({
  id: "list_grants",
  summary: "List grants, newest first; the values of conditions are shown to approvers only",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject(pagingFields),
  output: z.strictObject({ grants: z.array(grantShape), next_cursor: nullableSchema(z.string()) }),
  async run(caller, { limit = SERVICE_LIMITS.page_default, cursor }) {
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

export const revokeGrant = defineOperation({
  id: "revoke_grant",
  summary: "Revoke a grant, as its giver or an admin",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({ grant_id: givenId("grt_<uuid>") }),
  output: grantShape,
  errors: { not_found: "unknown grant", conflict: "already revoked" },
  async run(caller, { grant_id }) {
    const { core } = caller.app;
    // Read through this caller's view of the store, where another tenant's grant does not exist.
    if ((await core.store.get("grants", grant_id)) === undefined) throw unknownGrant(grant_id);
    const { grant, records } = await core.store.transact(revokeGrantUnit(core, caller.principal, grant_id));
    announceRecords(core.listeners, records);
    return shown(caller, grant);
  },
});

export const previewGrant = defineOperation({
  id: "preview_grant",
  summary:
    "Preview which recent captured calls a grant would have covered, and which rules required approval for them",
  role: "approver",
  within_tenant: true,
  input: previewInput,
  output: grantPreviewShape,
  feature: captureFeature,
  errors: { not_found: "capture is off" },
  async run(caller, input) {
    return grantPreview(caller.app, await giverOf(caller), termsOf(ofTenant(caller, input)), caller.signal);
  },
});
