/**
 * Decision stages before the policy, in pipeline order. Each returns its findings and none stops the others, because a
 * block lists every reason.
 */
import { haltsCovering } from "../halts/halt-index.ts";
import { canRequestPermission } from "../roles.ts";
import { isSealed } from "../runs/run.ts";
import type { DecisionFacts } from "./facts.ts";

/** `always` blocks in every mode; `mode` blocks in enforce and only warns in observe and advise. */
type Force = "always" | "mode";

export interface StageRefusal {
  force: Force;
  reason: string;
}

const NO_MANIFEST = "no manifest is registered for this tool";

type Stage = (facts: DecisionFacts) => StageRefusal[];

const runState: Stage = ({ run, caller }) => {
  const found: StageRefusal[] = [];
  if (!isSealed(run))
    found.push({
      force: "always",
      reason: "scope seal mismatch: the stored scope of this run was changed",
    });
  // The key was allowed this mode when the run was opened. Blocks in every mode, since a non-enforcing mode cannot
  // restrict itself.
  if (run.mode !== "enforce" && !caller.allow_observe)
    found.push({ force: "always", reason: `mode ${run.mode} needs a key with allow_observe` });
  return found;
};

const manifest: Stage = ({ manifest, run }) => {
  if (manifest !== null) return [];
  // Only observe mode accepts tools without a manifest; advise mode does not.
  const force = run.mode === "observe" ? "mode" : "always";
  return [{ force, reason: NO_MANIFEST }];
};

const lifecycle: Stage = ({ manifest, run }) => {
  if (manifest?.lifecycle !== "draft" || run.mode !== "enforce") return [];
  return [
    { force: "mode", reason: NO_MANIFEST },
    { force: "mode", reason: "the only manifest of this tool is a draft" },
  ];
};

const objections: Stage = ({ objections = [] }) =>
  objections.map((reason): StageRefusal => ({ force: "mode", reason }));

const scope: Stage = ({ manifest, run, caller }) => {
  if (manifest === null) return [];
  const { permission } = manifest;
  if (!run.scope.permissions.includes(permission))
    return [{ force: "mode", reason: `permission ${permission} is not in the run's scope` }];
  if (canRequestPermission(caller, permission)) return [];
  const reason = `permission ${permission} exceeds the current max_permissions of this key`;
  return [{ force: "mode", reason }];
};

const halts: Stage = (facts) => {
  const found: StageRefusal[] = [];
  if (facts.kill_switch !== null)
    found.push({ force: "always", reason: `kill switch: ${facts.kill_switch}` });
  const { tool, run } = facts;
  const values = { tool, actor: run.actor, tenant: run.tenant, environment: run.environment };
  for (const { reason } of haltsCovering(facts.halts, values))
    found.push({ force: "always", reason: `kill switch: ${reason}` });
  return found;
};

const prerequisites: Stage = (facts) => [
  ...facts.missing_prerequisites.map(
    (tool): StageRefusal => ({
      force: "mode",
      reason: `prerequisite ${tool} has not succeeded in this run`,
    }),
  ),
  ...facts.fallen_dependencies.map(
    (step): StageRefusal => ({
      force: "mode",
      reason: `step ${step}, which this call depends on, is not active`,
    }),
  ),
];

const idempotency: Stage = ({ repeat_of, run }) => {
  if (repeat_of === null) return [];
  // Does not reveal the id of another run.
  const where =
    repeat_of.run_id === run.run_id ? `step ${repeat_of.step} of this run` : "a step of another run";
  const out = "repeat it with other values, or after that step has failed or is undone";
  return [
    { force: "mode", reason: `idempotency: the same logical call is already active as ${where} (${out})` },
  ];
};

const before: Stage = ({ before }) => (before?.problem ? [{ force: "mode", reason: before.problem }] : []);

export const DECISION_STAGES: readonly Stage[] = [
  runState,
  manifest,
  lifecycle,
  objections,
  scope,
  halts,
  prerequisites,
  idempotency,
  before,
];
