/** Halts: the kill switch as a person pulls and releases it. The list in force is one document. */
import { invalid, notFound } from "../kernel/errors.ts";
import { compileGlob } from "../kernel/glob.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { HALT_FIELDS, type Halt, type HaltScope } from "../model/approval.ts";
import type { Unit } from "../port/store.ts";
import type { Core } from "./core.ts";
import { HALTS_KEY } from "./keys.ts";

interface HaltInput extends HaltScope {
  reason: string;
}

export function haltUnit(
  core: Core,
  by: string,
  input: HaltInput,
): Unit<{ halt: Halt; records: LedgerRecord[] }> {
  const scope = { tool: null, actor: null, tenant: null, environment: null } as Halt["scope"];
  for (const field of HALT_FIELDS) {
    const pattern = input[field];
    if (pattern === undefined || pattern === null) continue;
    if (pattern === "")
      throw invalid(`${field}: an empty pattern matches nothing; leave it out to halt everything`);
    compileGlob(pattern);
    scope[field] = pattern;
  }
  const halt: Halt = {
    id: `halt_${core.env.uuid()}`,
    reason: core.redact(input.reason),
    scope,
    by,
    created_ms: core.env.now(),
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

/** Lifts one halt, or all of them when no id is given; with a tenant, of its own halts only. */
export function resumeUnit(
  core: Core,
  by: string,
  id: string | null,
  tenant: string | null = null,
): Unit<{ lifted: string[]; records: LedgerRecord[] }> {
  return {
    needs: [["halts", HALTS_KEY]],
    run(tx) {
      const active = tx.get("halts", HALTS_KEY)?.active ?? [];
      const within = tenant === null ? active : active.filter(({ scope }) => scope.tenant === tenant);
      const lifted = id === null ? within : within.filter((halt) => halt.id === id);
      if (id !== null && lifted.length === 0) throw notFound(`no halt ${id} is in force`, "unknown_halt");
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

function describe(halt: Halt): string {
  const fields = HALT_FIELDS.filter((field) => halt.scope[field] !== null).map(
    (field) => `${field} ${halt.scope[field]}`,
  );
  return `${halt.id}: ${fields.length === 0 ? "everything" : fields.join(", ")}`;
}
