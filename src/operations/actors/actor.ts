/** One agent: permissions, past calls and open items. Each part is bounded, regardless of history. */

import * as z from "zod";
import { groupAlerts, groupMessage } from "../../alerts/groups.ts";
import {
  type ApprovalDoc,
  approvalTags,
  approvalView,
  approvalViewShape,
  haltView,
} from "../../govern/approvals/approval.ts";
import { isExpired } from "../../govern/expiry.ts";
import { isGrantUsable } from "../../govern/grants/grant.ts";
import { INCIDENT_STATUSES } from "../../govern/incidents/incident.ts";
import { allRows } from "../../govern/port/pages.ts";
import { RUN_MODES, RUN_STATES, type RunDoc } from "../../govern/runs/run.ts";
import { notFoundError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { activeAlerts } from "../background/alerting.ts";
import { allDrills } from "../drills/drill-results.ts";
import { activeHalts } from "../halts.ts";
import { trySweep } from "../incidents/sweep.ts";
import { isKeyShown } from "../pipeline/access.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText } from "../schemas.ts";
import { countActorCalls } from "./actor-calls.ts";
import { countUndos, latestRunsOf, summarizeRuns } from "./actor-runs.ts";

const HALTED_STATES = ["yes", "in_part", "no"] as const;

const count = z.int();
const actorShape = z.strictObject({
  actor: z.string(),
  tenants: z.array(nullableSchema(z.string())),
  keys: z.array(z.strictObject({ fingerprint: z.string(), disabled: z.boolean() })),
  calls: z.strictObject({
    hours: z
      .array(
        z.strictObject({
          from_ms: z.int(),
          allowed: count,
          would_block: count,
          waiting: count,
          refused: count,
          failed: count,
        }),
      )
      .meta({ description: "the last 24 hours, oldest first" }),
    more: z.boolean().meta({ description: "whether there are more calls than were counted" }),
    undone: count.meta({ description: "in the runs listed" }),
    undo_failed: count.meta({ description: "in the runs listed" }),
  }),
  undos: z
    .array(z.strictObject({ day_ms: z.int(), undone: count, failed: count }))
    .meta({ description: "by day, oldest first, in the runs listed" }),
  permissions: z.strictObject({ used: z.array(z.string()), unused: z.array(z.string()) }),
  tools: z.array(z.string()).meta({ description: "called in the runs listed" }),
  runs: z.array(
    z.strictObject({
      run_id: z.string(),
      tenant: nullableSchema(z.string()),
      mode: z.enum(RUN_MODES),
      reason: nullableSchema(z.string()),
      created_ms: z.int(),
      steps: count,
      state: z.enum(RUN_STATES),
    }),
  ),
  more_runs: z.boolean(),
  requests: z.array(approvalViewShape).meta({ description: "the first 200" }),
  grants: z
    .array(
      z.strictObject({
        id: z.string(),
        tool: z.string(),
        actor: z.string(),
        expires_ms: z.int(),
        uses: count,
        max_uses: count,
      }),
    )
    .meta({ description: "the first 200" }),
  halts: z.array(haltView),
  halted: z.enum(HALTED_STATES).meta({ description: "in_part: a halt covers some of its calls" }),
  standing: z.array(
    z.strictObject({ run_id: z.string(), step: z.int(), tool: z.string(), status: z.string() }),
  ),
  drills: z.array(
    z.strictObject({
      tool: z.string(),
      at_ms: z.int(),
      passed: z.boolean(),
      problem: nullableSchema(z.string()),
    }),
  ),
  alerts: z.array(
    z.strictObject({ id: z.string(), kind: z.string(), message: z.string(), since_ms: z.int() }),
  ),
  incidents: z.array(
    z.strictObject({ id: z.string(), status: z.enum(INCIDENT_STATUSES), opened_ms: z.int() }),
  ),
});
export type ActorView = z.infer<typeof actorShape>;

const INCIDENTS_LISTED = 20;

export const getActor = defineOperation({
  id: "get_actor",
  summary: "One agent: permissions, calls, runs, open requests, grants, halts, drills, alerts and incidents",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ actor: boundedText(256) }),
  output: actorShape,
  errors: { not_found: "no run, key or incident has this name" },
  async run({ app }, { actor }): Promise<ActorView> {
    const { core } = app;
    await trySweep(app);
    const { runs, more } = await latestRunsOf(app, actor);
    const keys = await keysOf(app, actor);
    const incidents = await incidentsOf(app, actor);
    if (runs.length + keys.length + incidents.length === 0)
      throw notFoundError(`no run, key or incident has the name ${JSON.stringify(actor)}`, "unknown_actor");
    const summary = await summarizeRuns(core, runs);
    const { hours, more: more_calls } = await countActorCalls(core.store, actor, core.env.now());
    const tenants = [...new Set([...runs, ...keys, ...incidents].map(({ tenant }) => tenant))];
    const halts = await haltsOf(app, actor, tenants);
    const tools = [...summary.tools].sort();
    const drills = (await allDrills(core)).filter(({ tool }) => summary.tools.has(tool));
    return {
      actor,
      tenants,
      keys: keys.map(({ fingerprint, disabled }) => ({ fingerprint, disabled })),
      calls: { hours, more: more_calls, undone: summary.undone, undo_failed: summary.undo_failed },
      undos: await countUndos(core, runs),
      permissions: permissionsOf(app, { runs, keys, tools }),
      tools,
      runs: summary.runs,
      more_runs: more,
      requests: (await requestsOf(app, actor)).map(approvalView),
      grants: await grantsFor(app, actor),
      halts: halts.map(({ halt }) => halt),
      halted: halts.some(({ whole }) => whole) ? "yes" : halts.length > 0 ? "in_part" : "no",
      standing: summary.standing,
      drills: drills.map(({ tool, at_ms, passed, problem }) => ({ tool, at_ms, passed, problem })),
      alerts: await alertsOf(app, actor),
      incidents: incidents.map(({ id, status, opened_ms }) => ({ id, status, opened_ms })),
    };
  },
});

/** Whether an agent without a run has a page: it has a key or an incident. */
export async function isIdleActor(app: ServiceApp, actor: string): Promise<boolean> {
  return (await keysOf(app, actor)).length + (await incidentsOf(app, actor)).length > 0;
}

/** The halts that can block a call of the agent, and whether each blocks all of them. */
async function haltsOf(app: ServiceApp, actor: string, tenants: readonly (string | null)[]) {
  const found = [];
  const isAny = (pattern: string | null) => pattern === null || pattern === "*";
  const fits = (pattern: string | null, value: string | null) =>
    isAny(pattern) || (value !== null && globMatches(pattern!, value));
  for (const halt of await activeHalts(app)) {
    const { actor: named, tenant, tool, environment } = halt.scope;
    const covers = halt.literal === true ? named === actor : fits(named, actor);
    const within = tenants.filter((one) => fits(tenant, one));
    if (!covers || within.length === 0) continue;
    const whole = isAny(tool) && isAny(environment) && within.length === tenants.length;
    found.push({ halt, whole });
  }
  return found;
}

type ActorKey = Awaited<ReturnType<typeof keysOf>>[number];

async function keysOf(app: ServiceApp, actor: string) {
  const entries = await (app.keys?.list() ?? Promise.resolve([])).catch(() => []);
  return entries.filter((entry) => entry.name === actor && isKeyShown(app, entry));
}

/** A key bounds what its runs may request. An agent without a key has what its runs requested. */
function permissionsOf(
  { core }: ServiceApp,
  { runs, keys, tools }: { runs: readonly RunDoc[]; keys: readonly ActorKey[]; tools: readonly string[] },
): ActorView["permissions"] {
  const { manifests } = core.rules();
  const caps =
    keys.length === 0
      ? runs.flatMap(({ scope }) => scope.permissions)
      : keys.filter(({ disabled }) => !disabled).flatMap(({ max_permissions }) => max_permissions);
  const allowed = manifests.permissions.filter((one) => caps.some((cap) => globMatches(cap, one)));
  const used = new Set(tools.flatMap((tool) => manifests.active(tool)?.permission ?? []));
  return { used: [...used].sort(), unused: allowed.filter((one) => !used.has(one)) };
}

const LISTED = 200;

async function requestsOf({ core }: ServiceApp, actor: string): Promise<ApprovalDoc[]> {
  const found: ApprovalDoc[] = [];
  const tag = approvalTags(["pending", "escalated"]);
  for await (const { doc } of allRows(core.store, "approvals", { tag })) {
    if (doc.actor === actor && !isExpired(doc, core.env.now())) found.push(doc);
    if (found.length === LISTED) break;
  }
  return found;
}

async function grantsFor({ core }: ServiceApp, actor: string): Promise<ActorView["grants"]> {
  const found: ActorView["grants"] = [];
  for await (const { doc } of allRows(core.store, "grants", { tag: "active" })) {
    const { id, match, expires_ms, uses, max_uses } = doc;
    if (!isGrantUsable(doc, core.env.now()) || !globMatches(match.actor, actor)) continue;
    found.push({ id, tool: match.tool, actor: match.actor, expires_ms, uses, max_uses });
    if (found.length === LISTED) break;
  }
  return found;
}

async function alertsOf(app: ServiceApp, actor: string): Promise<ActorView["alerts"]> {
  const found: ActorView["alerts"] = [];
  const own = (await activeAlerts(app)).filter((alert) => alert.actor === actor);
  for (const group of groupAlerts(own)) {
    const { id, kind, since_ms } = group.first;
    found.push({ id, kind, message: groupMessage(group), since_ms });
  }
  return found;
}

async function incidentsOf({ core }: ServiceApp, owner: string) {
  const rows = await core.store.list("incidents", { owner, order: "desc", limit: INCIDENTS_LISTED });
  return rows.map(({ doc }) => doc);
}
