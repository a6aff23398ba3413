/** Plans retention: the decision for each run. Only reads. */
import type { EngineCore } from "../govern/core.ts";
import { allRows } from "../govern/port/pages.ts";
import type { ListQuery } from "../govern/port/store.ts";
import { childRunsOf } from "../govern/runs/child-runs.ts";
import type { LegalHold } from "../govern/runs/hold.ts";
import type { RunDoc } from "../govern/runs/run.ts";
import { globMatches } from "../kernel/text/glob.ts";
import type { ManifestSet } from "../rules/manifest/types.ts";
import type { RetentionDoc } from "../rules/policy/schema.ts";
import { unconfinedStore } from "../store/tenant-store.ts";
import { coveringHold, readHolds } from "./holds.ts";

const DAY_MS = 86_400_000;

export interface RetentionSettings {
  rules: RetentionDoc;
  /** Replaces the default and the rules for this call. Manifests and holds still count. */
  days?: number | undefined;
  /** Whether the service can archive deleted runs as signed bundles. */
  can_archive: boolean;
}

export interface PlannedRun {
  run: RunDoc;
  age_days: number;
  keep_days: number;
  decision: "keep" | "due" | "due; needs an evidence bundle first" | `HELD (${string})`;
  hold: LegalHold | null;
  tools: string[];
  /** A child run that is kept, so that this run is kept too; null if there is none. */
  kept_child: string | null;
}

/** Yields runs, oldest first, after the run `after`. */
export async function* planRetention(
  core: EngineCore,
  settings: RetentionSettings,
  after?: ListQuery["after"],
): AsyncGenerator<PlannedRun> {
  const holds = {
    listed: await readHolds(core.store),
    all: await readHolds(unconfinedStore(core.store)),
  };
  const { manifests } = core.rules();
  for await (const { doc } of allRows(core.store, "runs", { after }))
    yield await planRun(core, doc, settings, holds, manifests);
}

/**
 * The holds that the caller can see, and all holds. A tenant-bound caller learns only that a hidden hold covers a run.
 */
interface Holds {
  listed: readonly LegalHold[];
  all: readonly LegalHold[];
}

async function planRun(
  core: EngineCore,
  run: RunDoc,
  settings: RetentionSettings,
  holds: Holds,
  manifests: ManifestSet,
): Promise<PlannedRun> {
  const rows = await core.store.list("run_tools", { owner: run.run_id, limit: 100_000 });
  const tools = rows.map((row) => row.doc.tool);
  const age_days = Math.floor((core.env.now() - run.created_ms) / DAY_MS);
  const keep_days = keepDays(run, tools, settings, manifests);
  const covering = (some: readonly LegalHold[]) => coveringHold(some, run, (tool) => tools.includes(tool));
  const hold = covering(holds.listed) ?? null;
  const kept_child = await keptChild(core, run, settings, holds, manifests);
  return { run, age_days, keep_days, hold, tools, kept_child, decision: decisionOf() };

  function decisionOf(): PlannedRun["decision"] {
    // Reported at any age, so that the person who placed the hold can see that it works.
    if (hold !== null) return `HELD (${hold.reason})`;
    if (covering(holds.all) !== undefined) return "HELD (by a hold that is not this tenant's)";
    if (age_days < keep_days || kept_child !== null) return "keep";
    return needsEvidence(tools, manifests) && !settings.can_archive
      ? "due; needs an evidence bundle first"
      : "due";
  }
}

/** A run is kept as long as one of its child runs, whose counters and followed values may belong to it. */
async function keptChild(
  core: EngineCore,
  run: RunDoc,
  settings: RetentionSettings,
  holds: Holds,
  manifests: ManifestSet,
): Promise<string | null> {
  for (const run_id of await childRunsOf(core.store, run)) {
    const child = await core.store.get("runs", run_id);
    if (child === undefined) continue;
    const { decision } = await planRun(core, child, settings, holds, manifests);
    if (!decision.startsWith("due")) return run_id;
  }
  return null;
}

/** Returns the longest retention of the default, every matching rule and the tools' manifests. */
function keepDays(
  run: RunDoc,
  tools: readonly string[],
  { rules, days }: RetentionSettings,
  manifests: ManifestSet,
): number {
  const wanted = [days ?? rules.default_days];
  const classes = tools.flatMap((tool) => manifests.active(tool)?.risk.data_class ?? []);
  for (const rule of days === undefined ? (rules.rules ?? []) : []) {
    const { tool, tenant, environment, data_class } = rule.match;
    const holds =
      (tool === undefined || tools.some((name) => globMatches(tool, name))) &&
      (tenant === undefined || (run.tenant !== null && globMatches(tenant, run.tenant))) &&
      (environment === undefined ||
        (run.environment !== null && globMatches(environment, run.environment))) &&
      (data_class === undefined || classes.some((name) => globMatches(data_class, name)));
    if (holds) wanted.push(rule.days);
  }
  for (const tool of tools) wanted.push(manifests.active(tool)?.audit.retention_days ?? 0);
  return Math.max(...wanted);
}

function needsEvidence(tools: readonly string[], manifests: ManifestSet): boolean {
  return tools.some((tool) => manifests.active(tool)?.audit.evidence_export === "required");
}
