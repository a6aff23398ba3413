/**
 * The stages of a decision before the policy's own, in pipeline order. Each looks at the facts and says
 * what it finds; none stops the others, because a block lists every reason.
 */
import { mayRequest } from "../../model/roles.ts";
import { isSealed } from "../../model/run.ts";
import type { Facts } from "./facts.ts";
import { haltsCovering } from "./halt-index.ts";

/** `always` refuses in every mode; `mode` refuses in enforce and only warns in observe and advise. */
type Force = "always" | "mode";

export interface StageRefusal {
  force: Force;
  reason: string;
}

const NO_MANIFEST = "no manifest is registered for this tool";

type Stage = (facts: Facts) => StageRefusal[];

const runState: Stage = ({ run, caller }) => {
  const found: StageRefusal[] = [];
  if (!isSealed(run))
    found.push({
      force: "always",
      reason: "scope seal mismatch: the stored scope of this run was changed",
    });
  // The mode was sealed when the key might; a mode in which nothing is refused cannot itself say what may run.
  if (run.mode !== "enforce" && !caller.allow_observe)
    found.push({ force: "always", reason: `mode ${run.mode} needs a key with allow_observe` });
  return found;
};

const manifest: Stage = ({ manifest, run }) => {
  if (manifest !== null) return [];
  // Advise mode helps with governed tools; only observe mode lets ungoverned ones through.
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
  if (mayRequest(caller, permission)) return [];
  const reason = `permission ${permission} is beyond what this key may request by now (max_permissions)`;
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
      reason: `step ${step}, which this call depends on, does not stand`,
    }),
  ),
];

const idempotency: Stage = ({ repeat_of, run }) => {
  if (repeat_of === null) return [];
  // Another run's id is not told.
  const where =
    repeat_of.run_id === run.run_id ? `step ${repeat_of.step} of this run` : "a step of another run";
  const out = "it can be made again once that step failed or was undone, or with other values";
  return [{ force: "mode", reason: `idempotency: the same logical call already stands as ${where}; ${out}` }];
};

const before: Stage = ({ before }) => (before?.problem ? [{ force: "mode", reason: before.problem }] : []);

export const STAGES: readonly Stage[] = [
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
