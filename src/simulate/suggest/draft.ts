/**
 * Drafts suggestions from observations, each with its evidence: limits with headroom above the peak, required approval
 * before irreversible calls, used permissions, and grants for calls that were always approved. A draft only adds to the
 * active policy.
 */
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { globMatches, isGlob } from "../../kernel/text/glob.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { ManifestSet } from "../../rules/manifest/types.ts";
import type { BudgetDoc, LimitDoc, PolicyDoc, RuleDoc } from "../../rules/policy/schema.ts";
import { BUDGET_WINDOW, LIMIT_WINDOW, type ToolUse, type UsageObservation } from "./observe.ts";

export type PolicySuggestion = { evidence: string } & (
  | { section: "rules"; entry: RuleDoc }
  | { section: "limits"; entry: LimitDoc }
  | { section: "budgets"; entry: BudgetDoc }
);

export interface UsedPermissions {
  actor: string;
  permissions: string[];
  /** Permissions that its runs requested and no call used. */
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
  suggestions: PolicySuggestion[];
  grants: SuggestedGrant[];
}

/** Approval requests of one actor for one tool, caused by one rule. */
export interface ApprovalStats {
  actor: string;
  tool: string;
  tenant: string | null;
  rule: string;
  approved: number;
  /** Number of requests denied, expired, withdrawn, or approved by break-glass. */
  otherwise: number;
  runs: Set<string>;
}

interface DraftBasis {
  manifests: ManifestSet;
  active: PolicyDoc;
  /** Permissions that each actor's runs were opened with. */
  granted: ReadonlyMap<string, ReadonlySet<string>>;
  asked: readonly ApprovalStats[];
  /** Actor of the draft, or null for all. */
  actor: string | null;
}

/** Minimum number of cases to count as "always". */
const ALWAYS = 3;

export function draftPolicy(observed: UsageObservation, around: DraftBasis): PolicyDraft {
  const uses = [...observed.uses.values()].sort(
    (a, b) => a.actor.localeCompare(b.actor) || a.tool.localeCompare(b.tool),
  );
  // A name with glob characters would match other names too.
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
      evidence: `${formatCountOf(sum(own), "call")} of ${formatCountOf(own.length, "tool")} in ${runsOf(runs)}`,
    };
  });
}

function irreversibleRules(uses: readonly ToolUse[], around: DraftBasis, ids: Ids): PolicySuggestion[] {
  const { manifests, active, actor, asked } = around;
  const tools = [...new Set(manifests.all.map(({ tool }) => tool))].sort();
  return tools.flatMap((tool): PolicySuggestion[] => {
    if (manifests.active(tool)?.effect !== "irreversible" || isGlob(tool)) return [];
    const own = uses.filter((use) => use.tool === tool);
    if (actor !== null && own.length === 0) return [];
    const [calls, approved] = [sum(own), own.reduce((n, use) => n + use.approved, 0)];
    // If an approver decided every call, an active rule already requires approval.
    const rules = asked.filter((one) => one.tool === tool && asksFor(active, one.rule));
    if (calls > 0 && approved === calls && rules.length > 0) return [];
    const runs = new Set(own.flatMap((use) => [...use.runs]));
    const before =
      calls === 0
        ? "not called in this time"
        : `${formatCountOf(calls, "call")} in ${runsOf(runs)}, ${approved} approved`;
    const entry: RuleDoc = {
      id: ids(`irreversible-${tool}`),
      match: actor === null ? { tool } : { tool, actor },
      action: "require_approval",
      reason: "this is irreversible, so an approver decides",
    };
    return [{ section: "rules", entry, evidence: `declared irreversible; ${before}` }];
  });
}

function limitFor(use: ToolUse, ids: Ids): PolicySuggestion {
  const { actor, tool, peak, calls, runs } = use;
  const entry: LimitDoc = {
    id: ids(`calls-${actor}-${tool}`),
    match: { tool, actor },
    max: Math.ceil(withHeadroom(Math.max(peak, MIN_PEAK))),
    per: "actor",
    window: LIMIT_WINDOW.text,
  };
  const evidence = `${formatCountOf(calls, "call")} in ${runsOf(runs)}; at most ${peak} in ${LIMIT_WINDOW.text}`;
  return { section: "limits", entry, evidence };
}

function budgetsFor(use: ToolUse, { manifests }: DraftBasis, ids: Ids): PolicySuggestion[] {
  const { actor, tool } = use;
  if (manifests.active(tool)?.effect === "read") return [];
  return [...use.amounts].flatMap(([path, amount]): PolicySuggestion[] => {
    // A budget counts against a call without the number, so every call must have had it.
    if (amount.calls !== use.calls || amount.peak === 0) return [];
    const entry: BudgetDoc = {
      id: ids(`sum-${actor}-${tool}-${path.replace("$args.", "")}`),
      match: { tool, actor },
      path,
      max: withHeadroom(amount.peak),
      per: "actor",
      window: BUDGET_WINDOW.text,
    };
    const peak = `at most ${amount.peak} in ${BUDGET_WINDOW.text}, ${amount.largest} in one call`;
    return [
      {
        section: "budgets",
        entry,
        evidence: `${formatCountOf(use.calls, "call")} in ${runsOf(use.runs)}; ${peak}`,
      },
    ];
  });
}

function grantsFor({ uses }: UsageObservation, { asked, active, manifests }: DraftBasis): SuggestedGrant[] {
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
    const max_uses = Math.min(approved, SERVICE_LIMITS.grant_uses);
    const irreversible = effect === "irreversible";
    const bounds = when.slice(0, SERVICE_LIMITS.grant_conditions);
    return [{ actor, tool, tenant, rule, when: bounds, max_uses, irreversible, evidence }];
  });
}

/** A grant is the decision of one approver, so it covers only rules with a quorum of one. */
function asksFor({ rules = [], approvals }: PolicyDoc, id: string): boolean {
  const rule = rules.find((one) => one.id === id);
  return rule?.action === "require_approval" && (rule.approval?.quorum ?? approvals?.quorum ?? 1) === 1;
}

/** Minimum peak; below it, a slightly busier day would already reach the limit. */
const MIN_PEAK = 6;
const ROOM = 1.5;

/** Adds half of the peak as headroom, rounded up to two significant digits. */
export function withHeadroom(peak: number): number {
  const wanted = peak * ROOM;
  const unit = 10 ** (Math.floor(Math.log10(wanted)) - 1);
  const rounded = Number((Math.ceil(Number((wanted / unit).toPrecision(12))) * unit).toPrecision(12));
  return Math.min(Math.max(rounded, peak), Number.MAX_SAFE_INTEGER);
}

type Ids = (wanted: string) => string;
const MAX_ID_LENGTH = 120;

/** Returns ids that no section of the active policy uses. */
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
    const plain = wanted.replace(/[^A-Za-z0-9._/-]+/g, "-").slice(0, MAX_ID_LENGTH);
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
  return `${formatCountOf(runs.size, "run")} (${named.join(", ")}${more > 0 ? ` and ${more} more` : ""})`;
}
