/** The kill switch. */
import * as z from "zod";
import { haltUnit, resumeUnit } from "../../engine/halts.ts";
import { HALTS_KEY } from "../../engine/keys.ts";
import { boundTo } from "../../model/roles.ts";
import { type App, announce } from "../app.ts";
import { ownTenant } from "../door/access.ts";
import { operation } from "../door/operation.ts";
import { haltView, noFields, personsReason, text } from "./schemas.ts";

const pattern = text(256).optional();

export const halt = operation({
  id: "halt",
  summary: "Halt new calls, everywhere or within a scope",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({
    reason: personsReason,
    tool: pattern,
    actor: pattern,
    tenant: pattern,
    environment: pattern,
  }),
  output: haltView,
  async run({ app, principal }, body) {
    const scope = { ...body, tenant: ownTenant(principal, body.tenant) };
    const { halt, records } = await app.core.store.transact(haltUnit(app.core, principal.name, scope));
    announce(app.core.listeners, records);
    return halt;
  },
});

export const resume = operation({
  id: "resume",
  summary: "Lift one halt, or all",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ id: z.string().optional() }),
  output: z.strictObject({ lifted: z.array(z.string()) }),
  errors: { not_found: "no such halt is in force" },
  async run({ app, principal }, { id }) {
    const { lifted, records } = await app.core.store.transact(
      resumeUnit(app.core, principal.name, id ?? null, boundTo(principal)),
    );
    announce(app.core.listeners, records);
    return { lifted };
  },
});

export async function activeHalts(app: App) {
  return (await app.core.store.get("halts", HALTS_KEY))?.active ?? [];
}

export const listHalts = operation({
  id: "list_halts",
  summary: "List the halts in force",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({ halts: z.array(haltView) }),
  async run({ app }) {
    return { halts: await activeHalts(app) };
  },
});
