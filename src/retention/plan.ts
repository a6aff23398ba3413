/** What retention would do with each run. Reads only. */
import type { Core } from "../engine/core.ts";
import { globMatches } from "../kernel/glob.ts";
import type { Hold } from "../model/hold.ts";
import type { ManifestSet } from "../model/manifest/types.ts";
import type { RetentionDoc } from "../model/policy/schema.ts";
import type { RunDoc } from "../model/run.ts";
import { allRows } from "../port/pages.ts";
import type { ListQuery } from "../port/store.ts";
import { wholeOf } from "../store/confined.ts";
import { coveringHold, readHolds } from "./holds.ts";

const DAY_MS = 86_400_000;

export interface RetentionSettings {
  rules: RetentionDoc;
  /** Replaces the default and the rules for this once; manifests and holds still count. */
  days?: number | undefined;
  /** Whether deleted runs can be archived as signed bundles. */
  can_archive: boolean;
}

export interface PlannedRun {
  run: RunDoc;
  age_days: number;
  keep_days: number;
  decision: "keep" | "due" | "due; needs an evidence bundle first" | `HELD (${string})`;
  hold: Hold | null;
  tools: string[];
}

/** Oldest run first, from behind `after` on. */
export async function* planRetention(
  core: Core,
  settings: RetentionSettings,
  after?: ListQuery["after"],
): AsyncGenerator<PlannedRun> {
  const holds = {
    told: await readHolds(core.store),
    all: await readHolds(wholeOf(core.store)),
  };
  const { manifests } = core.rules();
  for await (const { doc } of allRows(core.store, "runs", { after }))
    yield await planRun(core, doc, settings, holds, manifests);
}

/** Who is bound to a tenant is told that a hold beyond it covers a run, and no more. */
interface Holds {
  told: readonly Hold[];
  all: readonly Hold[];
}

async function planRun(
  core: Core,
  run: RunDoc,
  settings: RetentionSettings,
  holds: Holds,
  manifests: ManifestSet,
): Promise<PlannedRun> {
  const rows = await core.store.list("run_tools", { owner: run.run_id, limit: 100_000 });
  const tools = rows.map((row) => row.doc.tool);
  const age_days = Math.floor((core.env.now() - run.created_ms) / DAY_MS);
  const keep_days = keepDays(run, tools, settings, manifests);
  const covering = (some: readonly Hold[]) => coveringHold(some, run, (tool) => tools.includes(tool));
  const hold = covering(holds.told) ?? null;
  return { run, age_days, keep_days, hold, tools, decision: decisionOf() };

  function decisionOf(): PlannedRun["decision"] {
    // A hold is told whatever the age: whoever placed it wants to see that it took.
    if (hold !== null) return `HELD (${hold.reason})`;
    if (covering(holds.all) !== undefined) return "HELD (by a hold that is not this tenant's)";
    if (age_days < keep_days) return "keep";
    return needsEvidence(tools, manifests) && !settings.can_archive
      ? "due; needs an evidence bundle first"
      : "due";
  }
}

/** The longest of the default, every matching rule, and what the tools' own manifests ask for. */
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
