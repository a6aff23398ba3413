/** Contains an agent: halts it, revokes its authority and undoes its steps, in one job with one report. */
import * as z from "zod";
import type { ContainmentDoc } from "../../govern/port/docs.ts";
import { toStoredPrincipal } from "../../govern/roles.ts";
import { parseSince } from "../../kernel/duration.ts";
import { conflictError, invalidError, notFoundError } from "../../kernel/errors.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { tenantOf } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import { subjectsOfContainment } from "../incidents/subjects.ts";
import { effectiveTenant, isKeyShown } from "../pipeline/access.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, givenId, personsReason } from "../schemas.ts";
import {
  containmentView,
  findActiveHalt,
  getContainment,
  isHalted,
  lastContainment,
  startContainment,
} from "./job.ts";
import { previewContainment } from "./preview.ts";
import { type ContainReport, containReport, hasSameLeftovers } from "./report.ts";
import { type ContainmentScope, checkScope, findActors, type ScopeMatch } from "./scope.ts";

const jobShape = z.strictObject({
  id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  started_ms: z.int(),
  finished_ms: nullableSchema(z.int()),
  by: z.string(),
  actor: z.string(),
  tenant: nullableSchema(z.string()),
  since_ms: nullableSchema(z.int()),
  reason: z.string(),
  actors: z.array(z.string()),
  phase: z.string(),
  report: nullableSchema(containReport),
  error: nullableSchema(z.string()),
});
const startedJob = jobShape.pick({ id: true, state: true, started_ms: true, by: true, actors: true });

export const containPreview = z.strictObject({ dry_run: z.literal(true), ...containReport.shape });
export const containStarted = z.strictObject({ job: startedJob });

export const containInput = z.strictObject({
  actor: boundedText(256).meta({ description: "glob of actor names" }),
  tenant: boundedText(256)
    .optional()
    .meta({ description: "glob of tenants; limits the containment to them" }),
  since: boundedText(64).optional().meta({
    description: "undo only calls since then: 24h, or an ISO 8601 time; default: all calls",
  }),
  no_rollback: z.boolean().optional().meta({ description: "undo nothing" }),
  reason: personsReason,
  dry_run: z.boolean().optional(),
  confirm: z.boolean().optional().meta({ description: "without it, only previews the containment" }),
  expect_actors: z
    .int()
    .min(1)
    .optional()
    .meta({ description: "expected number of matching actors; required if the glob matches more than one" }),
});

export const containAgent = defineOperation({
  id: "contain",
  summary:
    "Contain an agent: halt it, revoke its authority and undo its steps; without confirm, preview that",
  role: "admin",
  within_tenant: true,
  input: containInput,
  output: z.union([containPreview, containStarted]),
  errors: {
    not_found: "no actor matches",
    conflict: "a different number of actors matches, or a containment with other options is in progress",
  },
  async run({ app, principal, at_the_data }, input) {
    const { core } = app;
    const now = core.env.now();
    const since_ms = input.since === undefined ? null : parseSince(input.since, now);
    const scope: ContainmentScope = {
      actor: input.actor,
      tenant: effectiveTenant(principal, input.tenant) ?? null,
      since_ms,
    };
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
      // A local caller has no role that could be revoked.
      authority: at_the_data === true ? undefined : toStoredPrincipal(principal),
      rollback,
      actors: found.actors,
      subjects: await subjectsOfContainment(app, scope, found),
    };
    const today = at_the_data === true ? undefined : app.today;
    let job: ContainmentDoc | null;
    do {
      const last = await lastContainment(core, scope);
      job =
        (await nothingLeft(app, last, scope, found, rollback)) ??
        (await startContainment(app, wish, today, last));
      // The containment in progress has ended since it was read, so its report may be the answer.
    } while (job === null);
    const { id, state, started_ms, by, actors } = job;
    return { job: { id, state, started_ms, by, actors } };
  },
});

function rollbackOf(app: ServiceApp, no_rollback: boolean): ContainReport["rollback"] {
  if (no_rollback) return "no";
  return app.jobTools === null ? "no_compensator" : "yes";
}

/** Guards against a glob that matches other actors than the caller expects. */
function expectActors(
  scope: ContainmentScope,
  { actors }: ScopeMatch,
  expected: number | undefined,
  dry: boolean,
): void {
  if (actors.length === 0) {
    const where = scope.tenant === null ? "" : ` within tenant ${JSON.stringify(scope.tenant)}`;
    throw notFoundError(
      `no actor matches ${JSON.stringify(scope.actor)}${where}: no run and no agent's key has such a name`,
    );
  }
  const some = `${actors.slice(0, 10).join(", ")}${actors.length > 10 ? ", ..." : ""}`;
  if (expected === undefined) {
    if (actors.length === 1 || dry) return;
    throw invalidError(
      `expect_actors: ${JSON.stringify(scope.actor)} matches ${actors.length} actors (${some}); send expect_actors: ${actors.length} if all of them are meant`,
    );
  }
  if (expected !== actors.length)
    throw conflictError(
      "actors_differ",
      `expect_actors: ${expected} expected, but ${JSON.stringify(scope.actor)} matches ${actors.length} (${some}); nothing was done`,
    );
}

async function foretellAll(
  app: ServiceApp,
  scope: ContainmentScope,
  found: ScopeMatch,
  rollback: ContainReport["rollback"],
): Promise<ContainReport> {
  const halt = await findActiveHalt(app.core, scope);
  return previewContainment(app, scope, found, rollback, {
    id: halt?.id ?? null,
    was_there: halt !== undefined,
  });
}

/**
 * Returns the last containment of the scope if it covers this request, its halt is still active, no work is left for
 * another one, and none of its leftovers was settled since.
 */
async function nothingLeft(
  app: ServiceApp,
  last: ContainmentDoc | undefined,
  scope: ContainmentScope,
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
  return todo === 0 && report !== null && hasSameLeftovers(report, now) ? last : null;
}

/** Whether the last containment covers at least this request. Otherwise its report answers a different question. */
function coversWish(
  last: ContainmentDoc,
  { since_ms }: ContainmentScope,
  rollback: ContainReport["rollback"],
): boolean {
  const asFar = last.since_ms === null || (since_ms !== null && last.since_ms <= since_ms);
  return asFar && (last.rollback === rollback || (last.rollback === "yes" && rollback !== "no"));
}

export const getContain = defineOperation({
  id: "get_contain",
  summary: "Read the progress and report of a containment",
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

/** Removes keys and grants that a tenant-bound caller cannot see, if a service-wide admin ran the containment. */
async function reportWithin({ core, keys }: ServiceApp, job: ContainmentDoc): Promise<ContainReport | null> {
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
