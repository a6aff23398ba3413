/** Opens a run. Its scope is fixed and sealed here and never widened. Opening writes no record. */
import { conflictError, forbiddenError, invalidError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import type { EngineCore } from "../core.ts";
import type { UnitOfWork } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import { RUN_ID_FORM, type RunDoc, type RunMode, scopeSeal } from "./run.ts";

export interface OpenRunInput {
  permissions: readonly string[];
  run_id?: string | undefined;
  mode?: RunMode | undefined;
  reason?: string | undefined;
}

/** Builds the requested run, or throws the reason why the principal cannot have it. */
export function newRun(core: EngineCore, principal: CallerPrincipal, input: OpenRunInput): RunDoc {
  const run_id = input.run_id ?? `run_${core.env.uuidv7()}`;
  if (!RUN_ID_FORM.test(run_id)) {
    throw invalidError(
      "run_id: up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit",
    );
  }
  const mode = input.mode ?? "enforce";
  if (mode !== "enforce" && !principal.allow_observe) {
    throw forbiddenError(`mode ${mode} needs a key with allow_observe`, "observe_not_allowed");
  }
  const permissions = [...new Set(input.permissions)];
  const caps = principal.max_permissions ?? core.rules().manifests.permissions;
  const beyond = permissions.filter((permission) => !caps.some((cap) => globMatches(cap, permission)));
  if (beyond.length > 0) {
    throw forbiddenError(
      `permissions exceed the max_permissions of this key: ${beyond.join(", ")}`,
      "permissions_exceed_cap",
    );
  }
  const { acting } = principal;
  const facts = {
    run_id,
    actor: principal.name,
    mode,
    tenant: principal.tenant,
    ...(acting === undefined ? {} : { acting }),
  };
  return {
    ...facts,
    principal: principal.id,
    environment: core.environment,
    reason: input.reason === undefined ? null : core.redact(input.reason),
    scope: { permissions, seal: scopeSeal({ ...facts, permissions }) },
    created_ms: core.env.now(),
    salt: Buffer.from(core.env.bytes(32)).toString("hex"),
    next_step: 0,
    next_run_seq: 0,
    open: 0,
    uncertain: 0,
    compensation_failed: 0,
    awaiting: 0,
    open_approvals: 0,
  };
}

export function openRunUnit(run: RunDoc): UnitOfWork<RunDoc> {
  return {
    needs: [["runs", run.run_id]],
    share: run.tenant ?? undefined,
    run(tx) {
      if (tx.get("runs", run.run_id) !== undefined)
        throw conflictError("run_exists", `run ${run.run_id} already exists`);
      tx.put("runs", run.run_id, run);
      return run;
    },
  };
}
