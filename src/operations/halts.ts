/** The kill switch. */
import * as z from "zod";
import { haltView } from "../govern/approvals/approval.ts";
import { HALTS_KEY } from "../govern/document-keys.ts";
import { haltUnit, resumeUnit } from "../govern/halts/halts.ts";
import { incidentNeeds } from "../govern/incidents/join-incident.ts";
import { tenantBinding } from "../govern/roles.ts";
import { announceRecords, type ServiceApp } from "./app.ts";
import { joinOnHalt, subjectsOfHalt } from "./incidents/subjects.ts";
import { effectiveTenant } from "./pipeline/access.ts";
import { defineOperation } from "./pipeline/operation.ts";
import { boundedText, noFields, personsReason } from "./schemas.ts";

const pattern = boundedText(256).optional();

export const haltCalls = defineOperation({
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
    const scope = { ...body, tenant: effectiveTenant(principal, body.tenant) };
    const { core } = app;
    const named = await subjectsOfHalt(app, scope);
    const unit = haltUnit(core, principal.name, scope);
    const { halt, records } = await core.store.transact({
      needs: [["halts", HALTS_KEY], ...incidentNeeds(named)],
      run(tx) {
        const done = unit.run(tx);
        joinOnHalt(core, tx, done.halt, named);
        return done;
      },
    });
    announceRecords(app.core.listeners, records);
    return halt;
  },
});

export const liftHalts = defineOperation({
  id: "resume",
  summary: "Lift one halt, or all",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ id: z.string().optional() }),
  output: z.strictObject({ lifted: z.array(z.string()) }),
  errors: { not_found: "no such halt is active" },
  async run({ app, principal }, { id }) {
    const { lifted, records } = await app.core.store.transact(
      resumeUnit(app.core, principal.name, id ?? null, tenantBinding(principal)),
    );
    announceRecords(app.core.listeners, records);
    return { lifted };
  },
});

export async function activeHalts(app: ServiceApp) {
  return (await app.core.store.get("halts", HALTS_KEY))?.active ?? [];
}

export const listHalts = defineOperation({
  id: "list_halts",
  summary: "List the active halts",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({ halts: z.array(haltView) }),
  async run({ app }) {
    return { halts: await activeHalts(app) };
  },
});
