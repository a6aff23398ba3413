/** The reasons that come before the policy's, all at once, in the order of the pipeline. */
import { expect, it } from "vitest";
import { principal, testEngine } from "../../../test/support/engine.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { haltUnit } from "../halts/halts.ts";

const MANIFESTS = `
- {tool: base, effect: read, permission: p}
- {tool: draft, effect: idempotent, permission: q, lifecycle: draft, requires: [base], idempotency: $args.k}
`;

it("are run state, manifest, lifecycle, scope, halts, prerequisites and dependencies, idempotency", async () => {
  verifies("contract.combine.order-foundation");
  const e = testEngine({
    manifests: MANIFESTS,
    policy: "version: 1\nrules: [{id: never, action: deny, reason: the policy comes last}]\n",
  });
  const bot = principal("bot");
  e.usePolicy("version: 1");
  await e.open(bot, { run_id: "seen", permissions: ["p", "q"], mode: "observe" });
  await e.intent(bot, "seen", "base", {});
  await e.outcome(bot, "seen", 0);
  expect(await e.intent(bot, "seen", "draft", { k: 1 })).toMatchObject({ decision: "allow" });

  const run = await e.open(bot, { run_id: "r", permissions: ["p"] });
  await e.intent(bot, "r", "base", {});
  await e.outcome(bot, "r", 0, { status: "failed" });
  const stored = (await e.store.get("runs", "r")) ?? run;
  const edited = { ...stored, scope: { ...stored.scope, permissions: ["p", "other"] } };
  await e.store.transact({ run: (tx) => tx.put("runs", "r", edited) });
  await e.store.transact(haltUnit(e.core, "root", { reason: "stop" }));
  e.usePolicy("version: 1\nrules: [{id: never, action: deny, reason: the policy comes last}]\n");

  expect(await e.intent(bot, "r", "draft", { k: 1 }, { depends_on: [0] })).toEqual({
    decision: "block",
    reasons: [
      expect.stringMatching(/^scope seal mismatch/),
      "no manifest is registered for this tool",
      "the only manifest of this tool is a draft",
      "permission q is not in the run's scope",
      "kill switch: stop",
      "prerequisite base has not succeeded in this run",
      "step 0, which this call depends on, is not active",
      expect.stringMatching(/^idempotency: /),
      "the policy comes last",
    ],
  });
  expect(await e.intent(bot, "r", "unknown", {}, { depends_on: [0] })).toEqual({
    decision: "block",
    reasons: [
      expect.stringMatching(/^scope seal mismatch/),
      "no manifest is registered for this tool",
      "kill switch: stop",
      "step 0, which this call depends on, is not active",
      "the policy comes last",
    ],
  });
});
