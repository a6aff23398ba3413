/**
 * From what was observed to what is suggested: bounds with room above the peak, a person's decision before what
 * nothing can take back, the permissions that were used, grants for what people always approve. Each with its
 * evidence. It only ever adds to the policy in force.
 */

import { globMatches, isGlob } from "../../kernel/glob.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { plural } from "../../kernel/words.ts";
import type { ManifestSet } from "../../model/manifest/types.ts";
import type { BudgetDoc, LimitDoc, PolicyDoc, RuleDoc } from "../../model/policy/schema.ts";
import { BUDGET_WINDOW, LIMIT_WINDOW, type Observation, type ToolUse } from "./observe.ts";

export type Suggestion = { evidence: string } & (
  | { section: "rules"; entry: RuleDoc }
  | { section: "limits"; entry: LimitDoc }
  | { section: "budgets"; entry: BudgetDoc }
);

export interface UsedPermissions {
  actor: string;
  permissions: string[];
  /** What its runs were opened with and no call needed. */
  unused: string[];
  evidence: string;
}

export interface SuggestedGrant {
  actor: string;
  tool: string;
  tenant: string | null;
  rule: string;
  when: string[];
  max_uses: number;
  irreversible: boolean;
  evidence: string;
}

export interface PolicyDraft {
  permissions: UsedPermissions[];
  suggestions: Suggestion[];
  grants: SuggestedGrant[];
}

/** Requests for approval of one tool by one actor that one rule asked for. */
export interface AskedApprovals {
  actor: string;
  tool: string;
  tenant: string | null;
  rule: string;
  approved: number;
  /** Denied, expired or withdrawn, or let through in an emergency. */
  otherwise: number;
  runs: Set<string>;
}

interface DraftBasis {
  manifests: ManifestSet;
  active: PolicyDoc;
  /** What the runs of each actor were opened with. */
  granted: ReadonlyMap<string, ReadonlySet<string>>;
  asked: readonly AskedApprovals[];
  /** The one actor that the draft is about, or null for all of them. */
  actor: string | null;
}

/** Often enough to call it always. */
const ALWAYS = 3;

export function draftPolicy(observed: Observation, around: DraftBasis): PolicyDraft {
  const uses = [...observed.uses.values()].sort(
    (a, b) => a.actor.localeCompare(b.actor) || a.tool.localeCompare(b.tool),
  );
  // A name that reads as a glob would stand for other names, too.
  const named = uses.filter(({ actor, tool }) => !isGlob(actor) && !isGlob(tool));
  const ids = takenIds(around.active);
  return {
    permissions: permissionsUsed(uses, around),
    suggestions: [
      ...irreversibleRules(named, around, ids),
      ...named.map((use) => limitFor(use, ids)),
      ...named.flatMap((use) => budgetsFor(use, around, ids)),
    ],
    grants: grantsFor(observed, around),
  };
}

function permissionsUsed(uses: readonly ToolUse[], { manifests, granted }: DraftBasis): UsedPermissions[] {
  const actors = [...new Set(uses.map(({ actor }) => actor))];
  return actors.map((actor) => {
    const own = uses.filter((use) => use.actor === actor);
    const needed = new Set(own.flatMap(({ tool }) => manifests.active(tool)?.permission ?? []));
    const runs = new Set(own.flatMap((use) => [...use.runs]));
    const held = [...(granted.get(actor) ?? [])];
    return {
      actor,
      permissions: [...needed].sort(),
      unused: held.filter((one) => ![...needed].some((used) => globMatches(one, used))).sort(),
      evidence: `${plural(sum(own), "call")} of ${plural(own.length, "tool")} in ${runsOf(runs)}`,
    };
  });
}

function irreversibleRules(uses: readonly ToolUse[], around: DraftBasis, ids: Ids): Suggestion[] {
  const { manifests, active, actor, asked } = around;
  const tools = [...new Set(manifests.all.map(({ tool }) => tool))].sort();
  return tools.flatMap((tool): Suggestion[] => {
    if (manifests.active(tool)?.effect !== "irreversible" || isGlob(tool)) return [];
    const own = uses.filter((use) => use.tool === tool);
    if (actor !== null && own.length === 0) return [];
    const [calls, approved] = [sum(own), own.reduce((n, use) => n + use.approved, 0)];
    // Where a person decided each of them, a rule in force asks already.
    const rules = asked.filter((one) => one.tool === tool && asksFor(active, one.rule));
    if (calls > 0 && approved === calls && rules.length > 0) return [];
    const runs = new Set(own.flatMap((use) => [...use.runs]));
    const before =
      calls === 0
        ? "not called in this time"
        : `${plural(calls, "call")} in ${runsOf(runs)}, ${approved} approved`;
    const entry: RuleDoc = {
      id: ids(`irreversible-${tool}`),
      match: actor === null ? { tool } : { tool, actor },
      action: "require_approval",
      reason: "nothing can take this back, so a person decides",
    };
    return [{ section: "rules", entry, evidence: `declared irreversible; ${before}` }];
  });
}

function limitFor(use: ToolUse, ids: Ids): Suggestion {
  const { actor, tool, peak, calls, runs } = use;
  const entry: LimitDoc = {
    id: ids(`calls-${actor}-${tool}`),
    match: { tool, actor },
    max: Math.ceil(withRoom(Math.max(peak, LEAST_PEAK))),
    per: "actor",
    window: LIMIT_WINDOW.text,
  };
  const evidence = `${plural(calls, "call")} in ${runsOf(runs)}; at most ${peak} in ${LIMIT_WINDOW.text}`;
  return { section: "limits", entry, evidence };
}

function budgetsFor(use: ToolUse, { manifests }: DraftBasis, ids: Ids): Suggestion[] {
  const { actor, tool } = use;
  if (manifests.active(tool)?.effect === "read") return [];
  return [...use.amounts].flatMap(([path, amount]): Suggestion[] => {
    // A budget holds a call without the number against it, so every call must have had it.
    if (amount.calls !== use.calls || amount.peak === 0) return [];
    const entry: BudgetDoc = {
      id: ids(`sum-${actor}-${tool}-${path.replace("$args.", "")}`),
      match: { tool, actor },
      path,
      max: withRoom(amount.peak),
      per: "actor",
      window: BUDGET_WINDOW.text,
    };
    const peak = `at most ${amount.peak} in ${BUDGET_WINDOW.text}, ${amount.largest} in one call`;
    return [
      {
        section: "budgets",
        entry,
        evidence: `${plural(use.calls, "call")} in ${runsOf(use.runs)}; ${peak}`,
      },
    ];
  });
}

function grantsFor({ uses }: Observation, { asked, active, manifests }: DraftBasis): SuggestedGrant[] {
  return asked.flatMap((one): SuggestedGrant[] => {
    const { actor, tool, tenant, rule, approved, otherwise, runs } = one;
    if (approved < ALWAYS || otherwise > 0 || isGlob(actor) || isGlob(tool)) return [];
    const effect = manifests.active(tool)?.effect;
    if (effect === undefined || !asksFor(active, rule)) return [];
    const amounts = uses.get(JSON.stringify([actor, tool]))?.amounts ?? [];
    const when = [...amounts].flatMap(([path, { largest_approved }]) =>
      largest_approved === null ? [] : [`${path} lte ${largest_approved}`],
    );
    const evidence = `all ${approved} requests that rule ${rule} made were approved, in ${runsOf(runs)}`;
    const max_uses = Math.min(approved, LIMITS.grant_uses);
    const irreversible = effect === "irreversible";
    const bounds = when.slice(0, LIMITS.grant_conditions);
    return [{ actor, tool, tenant, rule, when: bounds, max_uses, irreversible, evidence }];
  });
}

/** A grant is one person's decision, so it lifts only a rule that asks for one. */
function asksFor({ rules = [], approvals }: PolicyDoc, id: string): boolean {
  const rule = rules.find((one) => one.id === id);
  return rule?.action === "require_approval" && (rule.approval?.quorum ?? approvals?.quorum ?? 1) === 1;
}

/** Below it a busier day would already stand at the bound. */
const LEAST_PEAK = 6;
const ROOM = 1.5;

/** Half as much again, as people write numbers: two digits and zeros. */
export function withRoom(peak: number): number {
  const wanted = peak * ROOM;
  const unit = 10 ** (Math.floor(Math.log10(wanted)) - 1);
  const rounded = Number((Math.ceil(Number((wanted / unit).toPrecision(12))) * unit).toPrecision(12));
  return Math.min(Math.max(rounded, peak), Number.MAX_SAFE_INTEGER);
}

type Ids = (wanted: string) => string;
const LONGEST_ID = 120;

/** Ids that nothing of the policy in force has, in any section. */
function takenIds(active: PolicyDoc): Ids {
  const sections = [
    active.rules,
    active.limits,
    active.budgets,
    active.flows,
    active.windows,
    active.freezes,
  ];
  const taken = new Set(sections.flatMap((entries) => (entries ?? []).map(({ id }) => id)));
  return (wanted) => {
    const plain = wanted.replace(/[^A-Za-z0-9._/-]+/g, "-").slice(0, LONGEST_ID);
    let id = plain;
    for (let n = 2; taken.has(id); n++) id = `${plain}-${n}`;
    taken.add(id);
    return id;
  };
}

const sum = (uses: readonly ToolUse[]) => uses.reduce((n, { calls }) => n + calls, 0);

const NAMED_RUNS = 3;

function runsOf(runs: ReadonlySet<string>): string {
  const [named, more] = [[...runs].slice(0, NAMED_RUNS), runs.size - NAMED_RUNS];
  return `${plural(runs.size, "run")} (${named.join(", ")}${more > 0 ? ` and ${more} more` : ""})`;
}
