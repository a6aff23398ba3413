/** The coding agents that resident processes report: where each works, and whether it is governed. */
import * as z from "zod";
import { tenantBinding } from "../../govern/roles.ts";
import { invalidError } from "../../kernel/errors.ts";
import { asJson, fromJson } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { tenantOf, unconfinedStore } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";

const MAX_TEXT = 1_000;
const MAX_REASONS = 20;

const agentShape = z.strictObject({
  client: z.string().min(1).max(64),
  version: nullableSchema(z.string().max(64)),
  workspace: nullableSchema(z.string().max(MAX_TEXT)),
  governed: z.enum(["yes", "partly", "no"]),
  missing: z.array(z.string().max(MAX_TEXT)).max(MAX_REASONS),
  last_seen_ms: nullableSchema(z.int().min(0)),
});
const agentList = z
  .array(agentShape)
  .max(SERVICE_LIMITS.reported_agents, `at most ${SERVICE_LIMITS.reported_agents} agents`);

type ReportedAgent = z.infer<typeof agentShape>;
/** The reports of a tenant, by the id of the principal that made them. */
type Reports = Record<string, ReportedAgent[]>;

const keyOf = (tenant: string | null): string => `agents/${tenant === null ? "" : `of/${tenant}`}`;

export const reportAgents = defineOperation({
  id: "report_agents",
  summary: "Report the coding agents of a machine; replaces this key's earlier report",
  role: "agent",
  within_tenant: true,
  input: z.strictObject({ agents: agentList }),
  output: z.strictObject({ agents: z.array(agentShape) }),
  errors: { invalid: "too many agents are reported" },
  async run({ app, principal }, { agents }) {
    const key = keyOf(tenantBinding(principal));
    await unconfinedStore(app.core.store).transact({
      needs: [["meta", key]],
      run(tx) {
        const reports = fromJson<Reports | undefined>(tx.get("meta", key)) ?? {};
        const next = { ...reports, [principal.id]: agents };
        if (Object.values(next).flat().length > SERVICE_LIMITS.reported_agents)
          throw invalidError(
            `agents: at most ${SERVICE_LIMITS.reported_agents} are kept; unregister workspaces that are gone`,
          );
        tx.put("meta", key, asJson(next));
      },
    });
    return { agents };
  },
});

export const listReportedAgents = defineOperation({
  id: "list_agents",
  summary: "List the coding agents that resident processes reported",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({}),
  output: z.strictObject({ agents: z.array(agentShape) }),
  async run({ app }) {
    return { agents: await reportsOf(app) };
  },
});

async function reportsOf({ core }: Pick<ServiceApp, "core">): Promise<ReportedAgent[]> {
  const stored = await unconfinedStore(core.store).get("meta", keyOf(tenantOf(core.store)));
  return Object.values(fromJson<Reports | undefined>(stored) ?? {}).flat();
}
