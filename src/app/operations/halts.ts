/** The kill switch. */
import { z } from "zod";
import { haltUnit, resumeUnit } from "../../engine/halts.ts";
import { HALTS_KEY } from "../../engine/keys.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type App, announce } from "../app.ts";
import { operation } from "../operation.ts";
import { emptyQuery, haltView, noParams, text } from "../schemas.ts";

const pattern = text(256).optional();

export const halt = operation({
  id: "halt",
  summary: "Halt new calls, everywhere or within a scope",
  method: "POST",
  path: "/v1/halt",
  role: "admin",
  params: noParams,
  query: emptyQuery,
  body: z.strictObject({
    reason: text(LIMITS.reason_chars),
    tool: pattern,
    actor: pattern,
    tenant: pattern,
    environment: pattern,
  }),
  output: haltView,
  status: 201,
  async run({ app, principal }, { body }) {
    const { halt, records } = await app.core.store.transact(haltUnit(app.core, principal.name, body));
    announce(app.core.listeners, records);
    return halt;
  },
});

export const resume = operation({
  id: "resume",
  summary: "Lift one halt, or all",
  method: "POST",
  path: "/v1/resume",
  role: "admin",
  params: noParams,
  query: emptyQuery,
  body: z.strictObject({ id: z.string().optional() }),
  output: z.strictObject({ lifted: z.array(z.string()) }),
  status: 200,
  errors: { 404: "no such halt is in force" },
  async run({ app, principal }, { body }) {
    const { lifted, records } = await app.core.store.transact(
      resumeUnit(app.core, principal.name, body.id ?? null),
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
  method: "GET",
  path: "/v1/halts",
  role: "auditor",
  params: noParams,
  query: emptyQuery,
  output: z.strictObject({ halts: z.array(haltView) }),
  status: 200,
  async run({ app }) {
    return { halts: await activeHalts(app) };
  },
});
