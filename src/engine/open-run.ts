/** Opening a run: its scope is fixed and sealed here, and never widened. Opening writes no record. */
import { conflict, forbidden, invalid } from "../kernel/errors.ts";
import { globMatches } from "../kernel/glob.ts";
import type { Principal } from "../model/roles.ts";
import { type Mode, RUN_ID_FORM, type RunDoc, scopeSeal } from "../model/run.ts";
import type { Unit } from "../port/store.ts";
import type { Core } from "./core.ts";

export interface OpenRunInput {
  permissions: readonly string[];
  run_id?: string | undefined;
  mode?: Mode | undefined;
  reason?: string | undefined;
}

/** Builds the run a principal asks for, or says why it may not have it. */
export function newRun(core: Core, principal: Principal, input: OpenRunInput): RunDoc {
  const run_id = input.run_id ?? `run_${core.env.uuidv7()}`;
  if (!RUN_ID_FORM.test(run_id)) {
    throw invalid("run_id: up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit");
  }
  const mode = input.mode ?? "enforce";
  if (mode !== "enforce" && !principal.allow_observe) {
    throw forbidden(`mode ${mode} needs a key with allow_observe`, "observe_not_allowed");
  }
  const permissions = [...new Set(input.permissions)];
  const caps = principal.max_permissions ?? core.rules().manifests.permissions;
  const beyond = permissions.filter((permission) => !caps.some((cap) => globMatches(cap, permission)));
  if (beyond.length > 0) {
    throw forbidden(
      `permissions exceed what this key may request (max_permissions): ${beyond.join(", ")}`,
      "permissions_exceed_cap",
    );
  }
  const facts = { run_id, actor: principal.name, mode, tenant: principal.tenant };
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

export function openRunUnit(run: RunDoc): Unit<RunDoc> {
  return {
    needs: [["runs", run.run_id]],
    share: run.tenant ?? undefined,
    run(tx) {
      if (tx.get("runs", run.run_id) !== undefined)
        throw conflict("run_exists", `run ${run.run_id} already exists`);
      tx.put("runs", run.run_id, run);
      return run;
    },
  };
}
