/** Halts: the kill switch that operators set and release. One document lists the active halts. */
import { invalidError, notFoundError } from "../../kernel/errors.ts";
import { compileGlob, isGlob } from "../../kernel/text/glob.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { HALT_FIELDS, type HaltScope, type StoredHalt } from "../approvals/approval.ts";
import type { EngineCore } from "../core.ts";
import { HALTS_KEY } from "../document-keys.ts";
import type { UnitOfWork } from "../port/store.ts";

interface HaltInput extends HaltScope {
  reason: string;
  /** The actor is a plain name, also with characters of a glob. */
  literal?: boolean;
}

export function haltUnit(
  core: EngineCore,
  by: string,
  input: HaltInput,
): UnitOfWork<{ halt: StoredHalt; records: LedgerRecord[] }> {
  const scope = { tool: null, actor: null, tenant: null, environment: null } as StoredHalt["scope"];
  for (const field of HALT_FIELDS) {
    const pattern = input[field];
    if (pattern === undefined || pattern === null) continue;
    if (pattern === "")
      throw invalidError(`${field}: an empty pattern matches nothing; leave it out to halt everything`);
    if (field !== "actor" || input.literal !== true) compileGlob(pattern);
    scope[field] = pattern;
  }
  const literal = input.literal === true && isGlob(scope.actor ?? "");
  const halt: StoredHalt = {
    id: `halt_${core.env.uuid()}`,
    reason: core.redact(input.reason),
    scope,
    by,
    created_ms: core.env.now(),
    ...(literal ? { literal } : {}),
  };
  return {
    needs: [["halts", HALTS_KEY]],
    run(tx) {
      const active = tx.get("halts", HALTS_KEY)?.active ?? [];
      tx.put("halts", HALTS_KEY, { active: [...active, halt] });
      const record = tx.append({
        event: "halted",
        actor: by,
        ts_ms: core.env.now(),
        detail: describe(halt),
        reason: halt.reason,
      });
      return { halt, records: [record] };
    },
  };
}

/** Releases one halt, or all if there is no id; with a tenant, only halts of that tenant. */
export function resumeUnit(
  core: EngineCore,
  by: string,
  id: string | null,
  tenant: string | null = null,
): UnitOfWork<{ lifted: string[]; records: LedgerRecord[] }> {
  return {
    needs: [["halts", HALTS_KEY]],
    run(tx) {
      const active = tx.get("halts", HALTS_KEY)?.active ?? [];
      const within = tenant === null ? active : active.filter(({ scope }) => scope.tenant === tenant);
      const lifted = id === null ? within : within.filter((halt) => halt.id === id);
      if (id !== null && lifted.length === 0) throw notFoundError(`no active halt ${id}`, "unknown_halt");
      const kept = active.filter((halt) => !lifted.includes(halt));
      tx.put("halts", HALTS_KEY, { active: kept });
      const records = lifted.map((halt) =>
        tx.append({
          event: "resumed",
          actor: by,
          ts_ms: core.env.now(),
          detail: describe(halt),
          reason: halt.reason,
        }),
      );
      return { lifted: lifted.map((halt) => halt.id), records };
    },
  };
}

function describe(halt: StoredHalt): string {
  const fields = HALT_FIELDS.filter((field) => halt.scope[field] !== null).map(
    (field) => `${field} ${halt.scope[field]}`,
  );
  return `${halt.id}: ${fields.length === 0 ? "everything" : fields.join(", ")}`;
}
