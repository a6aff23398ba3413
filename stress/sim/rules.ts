/** The manifests and the policy under which histories are played; the model says the same in its own words. */
import { manifestSet } from "../../src/rules/manifest/set.ts";
import type { ToolEffect, ToolManifest } from "../../src/rules/manifest/types.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { BUDGET, KNOWN, LARGE, LIMIT } from "./model.ts";

/** Longer than any history, whichever way its clocks jump. */
const window = "3650d";

export const RULES = {
  manifests: manifestSet([...KNOWN.values()].map(manifest)),
  policy: compilePolicy({
    version: 1,
    rules: [
      { id: "payments", match: { tool: "pay" }, action: "require_approval" },
      {
        id: "large",
        match: { tool: "pay" },
        when: [{ path: "$args.amount", op: "gte", value: LARGE }],
        action: "require_approval",
        approval: { quorum: 2 },
      },
    ],
    limits: [{ id: "looks", match: { tool: "look" }, max: LIMIT, per: "run", window }],
    budgets: [
      { id: "sends", match: { tool: "send" }, path: "$args.amount", max: BUDGET, per: "actor", window },
    ],
    approvals: { ttl: "1h" },
  }),
};

function manifest({
  name,
  effect,
  requires,
  undoable,
  permission,
}: {
  name: string;
  effect: ToolEffect;
  requires: string[];
  undoable: boolean;
  permission: string;
}): ToolManifest {
  return {
    tool: name,
    version: "1",
    lifecycle: "approved",
    effect,
    permission,
    owner: null,
    requires,
    idempotency: name === "once" ? ["$args.key"] : [],
    risk: { data_class: null, blast_radius: null },
    compensation: undoable
      ? {
          tool: `undo.${name}`,
          args: { id: "$result.id" },
          kind: "inverse",
          residue: [],
          requires_approval: false,
        }
      : null,
    verification: null,
    audit: { redaction: [], retention_days: null, evidence_export: null },
  };
}
