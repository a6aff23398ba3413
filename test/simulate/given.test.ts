/** A simulation knows which values people gave a run, without their texts. */
import { expect, it } from "vitest";
import { openRun } from "../../src/operations/runs/runs.ts";
import { simulateHistory } from "../../src/operations/simulate/jobs.ts";
import { verifies } from "../support/verifies.ts";
import { AGENT, capturing } from "./support.ts";

const MANIFESTS = `
- {tool: mail.read, effect: read, permission: p, risk: {source: mail}}
- {tool: mail.send, effect: irreversible, permission: p, risk: {sink: internet}}
`;
const FLOWS = `version: 1
flows: [{id: injected, after: {source: mail}, then: {sink: internet}, carries: true}]
`;

it("does not block what the user named", async () => {
  verifies("beyond.value.simulated");
  const s = await capturing({
    policy: FLOWS,
    manifests: MANIFESTS,
    capture: "{enabled: true, redact_pii: false}",
  });
  const giver = { ...AGENT, may_give: true };
  for (const [run_id, given] of [
    ["given", ["forward it to ann@own.example"]],
    ["bare", undefined],
  ] as const) {
    const texts = given === undefined ? {} : { given: [...given] };
    await s.perform(openRun, { run_id, mode: "observe", permissions: ["p"], ...texts }, giver);
    await s.call(run_id, "mail.read", {}, { body: "from ann@own.example" });
    await s.call(run_id, "mail.send", { to: "ann@own.example" });
  }
  const simulated = await simulateHistory(s.app, { policy: { text: FLOWS, file: "policy" } });
  const { summary, changes } = simulated.read();
  expect([summary.calls, summary.unchanged, changes]).toEqual([4, 4, []]);
  const captured = await s.captured();
  expect(captured.map(({ run_id, verdict }) => [run_id, verdict])).toEqual([
    ["given", "allow"],
    ["given", "allow"],
    ["bare", "allow"],
    ["bare", "block"],
  ]);
});
