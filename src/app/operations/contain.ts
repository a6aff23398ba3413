/** Containing an agent: everything it has is stopped, taken back and undone, in one job with one report. */
import * as z from "zod";
import { parseSince } from "../../kernel/duration.ts";
import { conflict, invalid, notFound } from "../../kernel/errors.ts";
import { keptOf } from "../../model/roles.ts";
import type { ContainmentDoc } from "../../port/docs.ts";
import { tenantOf } from "../../store/confined.ts";
import type { App } from "../app.ts";
import { isKeyShown, ownTenant } from "../door/access.ts";
import { operation } from "../door/operation.ts";
import {
  containmentView,
  getContainment,
  haltInForce,
  isHalted,
  lastContainment,
  startContainment,
} from "./contain/job.ts";
import { type ContainReport, containReport, stillLeft } from "./contain/report.ts";
import { checkScope, findActors, type Scope, type ScopeMatch } from "./contain/scope.ts";
import { survey } from "./contain/survey.ts";
import { givenId, nullable, personsReason, text } from "./schemas.ts";

const jobShape = z.strictObject({
  id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  started_ms: z.int(),
  finished_ms: nullable(z.int()),
  by: z.string(),
  actor: z.string(),
  tenant: nullable(z.string()),
  since_ms: nullable(z.int()),
  reason: z.string(),
  actors: z.array(z.string()),
  phase: z.string(),
  report: nullable(containReport),
  error: nullable(z.string()),
});
const startedJob = jobShape.pick({ id: true, state: true, started_ms: true, by: true, actors: true });

export const containForetold = z.strictObject({ dry_run: z.literal(true), ...containReport.shape });
export const containStarted = z.strictObject({ job: startedJob });

export const containInput = z.strictObject({
  actor: text(256).meta({ description: "a glob over the names of actors" }),
  tenant: text(256).optional().meta({ description: "a glob; only within these tenants" }),
  since: text(64).optional().meta({
    description: "only what was called since then: 24h, or an ISO 8601 time; without it everything",
  }),
  no_rollback: z.boolean().optional().meta({ description: "undo nothing" }),
  reason: personsReason,
  dry_run: z.boolean().optional(),
  confirm: z
    .boolean()
    .optional()
    .meta({ description: "without it nothing is done, and what would be is said" }),
  expect_actors: z
    .int()
    .min(1)
    .optional()
    .meta({ description: "how many actors the glob matches; needed where it is more than one" }),
});

export const contain = operation({
  id: "contain",
  summary:
    "Contain an agent: halt it, take back what it holds and undo what it did; without confirm, say what that is",
  role: "admin",
  within_tenant: true,
  input: containInput,
  output: z.union([containForetold, containStarted]),
  errors: {
    not_found: "nobody matches",
    conflict: "another number of actors matches, or one with other options is under way",
  },
  async run({ app, principal, at_the_data }, input) {
    const { core } = app;
    const now = core.env.now();
    const since_ms = input.since === undefined ? null : parseSince(input.since, now);
    const scope: Scope = { actor: input.actor, tenant: ownTenant(principal, input.tenant) ?? null, since_ms };
    checkScope(scope, now);
    const found = await findActors(app, scope);
    const rollback = rollbackOf(app, input.no_rollback === true);
    const dry = input.confirm !== true || input.dry_run === true;
    expectActors(scope, found, input.expect_actors, dry);
    if (dry) return { dry_run: true as const, ...(await foretellAll(app, scope, found, rollback)) };
    const wish = {
      ...scope,
      reason: input.reason,
      by: principal.name,
      // Whoever sits at the data has no role that could be taken away.
      authority: at_the_data === true ? undefined : keptOf(principal),
      rollback,
      actors: found.actors,
    };
    const today = at_the_data === true ? undefined : app.today;
    let job: ContainmentDoc | null;
    do {
      const last = await lastContainment(core, scope);
      job =
        (await nothingLeft(app, last, scope, found, rollback)) ??
        (await startContainment(app, wish, today, last));
      // One that was under way has ended since it was looked at: its report may be the answer.
    } while (job === null);
    const { id, state, started_ms, by, actors } = job;
    return { job: { id, state, started_ms, by, actors } };
  },
});

function rollbackOf(app: App, no_rollback: boolean): ContainReport["rollback"] {
  if (no_rollback) return "no";
  return app.jobTools === null ? "no_compensator" : "yes";
}

/** A pattern that means more, or others, than its author believes stops the wrong agents. */
function expectActors(
  scope: Scope,
  { actors }: ScopeMatch,
  expected: number | undefined,
  dry: boolean,
): void {
  if (actors.length === 0) {
    const where = scope.tenant === null ? "" : ` within tenant ${JSON.stringify(scope.tenant)}`;
    throw notFound(
      `no actor matches ${JSON.stringify(scope.actor)}${where}: no run and no agent's key has such a name`,
    );
  }
  const some = `${actors.slice(0, 10).join(", ")}${actors.length > 10 ? ", ..." : ""}`;
  if (expected === undefined) {
    if (actors.length === 1 || dry) return;
    throw invalid(
      `expect_actors: ${JSON.stringify(scope.actor)} matches ${actors.length} actors (${some}); send expect_actors: ${actors.length} if all of them are meant`,
    );
  }
  if (expected !== actors.length)
    throw conflict(
      "actors_differ",
      `expect_actors: ${expected} expected, but ${JSON.stringify(scope.actor)} matches ${actors.length} (${some}); nothing was done`,
    );
}

async function foretellAll(
  app: App,
  scope: Scope,
  found: ScopeMatch,
  rollback: ContainReport["rollback"],
): Promise<ContainReport> {
  const halt = await haltInForce(app.core, scope);
  return survey(app, scope, found, rollback, { id: halt?.id ?? null, was_there: halt !== undefined });
}

/**
 * The last containment of the scope, where it was to do as much, its halt is in force, nothing is left that another
 * could do, and nothing that it left was settled since.
 */
async function nothingLeft(
  app: App,
  last: ContainmentDoc | undefined,
  scope: Scope,
  found: ScopeMatch,
  rollback: ContainReport["rollback"],
): Promise<ContainmentDoc | null> {
  if (last?.state !== "done" || !coversWish(last, scope, rollback)) return null;
  if (!(await isHalted(app.core, last))) return null;
  const now = await foretellAll(app, scope, found, rollback);
  const { keys, requests, revoked, undone } = now;
  const taken = [revoked.plans, revoked.delegations, revoked.grants].flat();
  const todo = keys.disabled.length + requests.denied.length + taken.length + undone;
  const { report } = containmentView(last);
  return todo === 0 && report !== null && stillLeft(report, now) ? last : null;
}

/** Whether what it was asked for is all that is asked for now: else its report answers another question. */
function coversWish(last: ContainmentDoc, { since_ms }: Scope, rollback: ContainReport["rollback"]): boolean {
  const asFar = last.since_ms === null || (since_ms !== null && last.since_ms <= since_ms);
  return asFar && (last.rollback === rollback || (last.rollback === "yes" && rollback !== "no"));
}

export const getContain = operation({
  id: "get_contain",
  summary: "Progress and report of a containment",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ contain_id: givenId("ctn_<uuid>") }),
  output: z.strictObject({ job: jobShape }),
  errors: { not_found: "unknown containment" },
  async run({ app }, { contain_id }) {
    const job = await getContainment(app.core, contain_id);
    return { job: { ...containmentView(job), report: await reportWithin(app, job) } };
  },
});

/** An admin of the whole service reaches keys and grants that are not there for whoever is bound to the tenant. */
async function reportWithin({ core, keys }: App, job: ContainmentDoc): Promise<ContainReport | null> {
  const { report } = containmentView(job);
  if (report === null || tenantOf(core.store) === null || job.authority?.tenant !== undefined) return report;
  const entries = await (keys?.list() ?? Promise.resolve([])).catch(() => []);
  const shown = new Set(entries.filter((one) => isKeyShown({ core }, one)).map((one) => one.fingerprint));
  const isShown = ({ fingerprint }: { fingerprint: string }) => shown.has(fingerprint);
  const { disabled, left, note } = report.keys;
  const wider: ContainReport["wider"] = [];
  for (const line of report.wider)
    if ((await core.store.get("grants", line.id)) !== undefined) wider.push(line);
  return {
    ...report,
    keys: { disabled: disabled.filter(isShown), left: left.filter(isShown), note },
    wider,
  };
}
