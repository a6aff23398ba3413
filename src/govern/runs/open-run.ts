/** Opens a run. Its scope is fixed and sealed here and never widened. Opening writes no record. */
import { conflictError, forbiddenError, invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import { followTree } from "../traces/follow.ts";
import { assertRunOwner, loadSealedRun } from "./load-run.ts";
import { countedRun, RUN_ID_FORM, type RunDoc, type RunMode, scopeSeal, type TreePlace } from "./run.ts";

export interface OpenRunInput {
  permissions: readonly string[];
  run_id?: string | undefined;
  mode?: RunMode | undefined;
  reason?: string | undefined;
  /** SHA-256 of the launcher's secret, for the run of a confined command. */
  sandbox?: string | undefined;
}

/** Builds the requested run, or throws the reason why the principal cannot have it. */
export function newRun(
  core: EngineCore,
  principal: CallerPrincipal,
  input: OpenRunInput,
  parent?: RunDoc,
): RunDoc {
  const run_id = input.run_id ?? `run_${core.env.uuidv7()}`;
  if (!RUN_ID_FORM.test(run_id)) {
    throw invalidError(
      "run_id: up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit",
    );
  }
  const mode = input.mode ?? parent?.mode ?? "enforce";
  if (mode !== "enforce" && !principal.allow_observe) {
    throw forbiddenError(`mode ${mode} needs a key with allow_observe`, "observe_not_allowed");
  }
  const permissions = [...new Set(input.permissions)];
  assertPermitted(core, principal, permissions, parent);
  const { acting } = principal;
  const child_of = parent && placeUnder(parent, mode);
  const facts = {
    run_id,
    actor: parent?.actor ?? principal.name,
    mode,
    tenant: parent === undefined ? principal.tenant : parent.tenant,
    ...(acting === undefined ? {} : { acting }),
  };
  return {
    ...facts,
    principal: principal.id,
    environment: parent === undefined ? core.environment : parent.environment,
    reason: input.reason === undefined ? null : core.redact(input.reason),
    scope: { permissions, seal: scopeSeal({ ...facts, permissions, child_of }) },
    created_ms: core.env.now(),
    salt: Buffer.from(core.env.bytes(32)).toString("hex"),
    next_step: 0,
    next_run_seq: 0,
    open: 0,
    uncertain: 0,
    compensation_failed: 0,
    awaiting: 0,
    open_approvals: 0,
    ...(child_of === undefined ? {} : { child_of }),
    ...(input.sandbox === undefined ? {} : { sandbox: input.sandbox }),
  };
}

function assertPermitted(
  core: EngineCore,
  principal: CallerPrincipal,
  permissions: readonly string[],
  parent: RunDoc | undefined,
): void {
  const caps = principal.max_permissions ?? core.rules().manifests.permissions;
  const beyond = permissions.filter((permission) => !caps.some((cap) => globMatches(cap, permission)));
  if (beyond.length > 0) {
    throw forbiddenError(
      `permissions exceed the max_permissions of this key: ${beyond.join(", ")}`,
      "permissions_exceed_cap",
    );
  }
  if (parent === undefined) return;
  const wider = permissions.filter((permission) => !parent.scope.permissions.includes(permission));
  if (wider.length > 0) {
    throw forbiddenError(
      `permissions exceed those of the parent run: ${wider.join(", ")}`,
      "permissions_exceed_parent",
    );
  }
}

function placeUnder(parent: RunDoc, mode: RunMode): TreePlace {
  if (mode !== parent.mode)
    throw invalidError(`mode: a child run has the mode of its parent, ${parent.mode}; omit mode`);
  const level = (parent.child_of?.level ?? 1) + 1;
  if (level > SERVICE_LIMITS.run_levels)
    throw invalidError(`parent: at most ${SERVICE_LIMITS.run_levels} levels of runs`);
  return { parent: parent.run_id, counted_run: countedRun(parent), level };
}

export function openRunUnit(run: RunDoc): UnitOfWork<RunDoc> {
  return {
    needs: [["runs", run.run_id]],
    share: run.tenant ?? undefined,
    run: (tx) => putNewRun(tx, run),
  };
}

function putNewRun(tx: StoreTx, run: RunDoc): RunDoc {
  if (tx.get("runs", run.run_id) !== undefined)
    throw conflictError("run_exists", `run ${run.run_id} already exists`);
  tx.put("runs", run.run_id, run);
  return run;
}

/** Opens a run under its parent, which counts its children. */
export function openChildRunUnit(core: EngineCore, run: RunDoc, { parent }: TreePlace): UnitOfWork<RunDoc> {
  return {
    needs: [
      ["runs", run.run_id],
      ["runs", parent],
    ],
    share: run.tenant ?? undefined,
    run(tx) {
      const opener = loadSealedRun(tx, parent);
      assertRunOwner(opener, { id: run.principal });
      const children = (opener.children ?? 0) + 1;
      if (children > SERVICE_LIMITS.child_runs)
        throw invalidError(`parent: a run can open at most ${SERVICE_LIMITS.child_runs} child runs`);
      followTree(tx, core.rules().policy, opener);
      putNewRun(tx, run);
      tx.put("runs", parent, { ...opener, children });
      tx.put("child_runs", run.run_id, {
        run_id: run.run_id,
        parent,
        root: countedRun(run),
        opened_ms: run.created_ms,
      });
      return run;
    },
  };
}
