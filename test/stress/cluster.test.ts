/** What a cluster run concludes: it reports a loss, a fork, an impossible history and a checker that believes lies. */
import { expect, it } from "vitest";
import { nothingWrong } from "../../stress/fault/audit.ts";
import { isCleanReport, type Report, reportText } from "../../stress/fault/cluster/report.ts";
import { ledgerHistory, positionsOf } from "../../stress/fault/cluster/verdict.ts";
import { verifies } from "../support/verifies.ts";

const CLEAN: Report = {
  rows: [{ fault: "primary killed", trials: 1, answers: 9, lost: 0, longest_gap_ms: 20_000 }],
  minutes: 1,
  findings: nothingWrong(),
  records: 20,
  refused: 3,
  abandoned: 0,
  checked: { operations: 5, objects: 1, per_model: { grant: 5 }, illegal: [], undecided: [] },
  believed_lies: [],
  problems: [],
};

it("is clean only without any damage", () => {
  verifies("beyond.cluster.verdict");
  expect(isCleanReport(CLEAN)).toBe(true);
  expect(reportText(CLEAN)).toMatch(/primary killed +1 +9 +0 +20\.0 s\n/);
  const damaged: Partial<Report>[] = [
    ...(["lost", "forks", "broken_chains", "bare_allows", "half_units"] as const).map((name) => ({
      findings: { ...nothingWrong(), [name]: 1 },
    })),
    { checked: { ...CLEAN.checked, illegal: ["grant g"] } },
    { checked: { ...CLEAN.checked, undecided: ["grant g"] } },
    { checked: { ...CLEAN.checked, operations: 0 } },
    { believed_lies: ["grant"] },
    { problems: ["a node did not come back"] },
    { rows: [] },
  ];
  for (const more of damaged) {
    expect(isCleanReport({ ...CLEAN, ...more })).toBe(false);
    expect(reportText({ ...CLEAN, ...more })).toMatch(/FAILED$/);
  }
});

it("looks every answer up in the ledger, by its step or by the id of the decision", () => {
  verifies("beyond.cluster.verdict");
  const id = "apr_5e084583-0c67-4d43-9a5e-8a5b2f1a7c11";
  const link = { prev: "", hash: "" };
  const records = [
    { seq: 0, event: "intended", run_id: "r", step: 0, ...link },
    { seq: 1, event: "approved", run_id: "r", detail: { approval: id }, ...link },
    { seq: 2, event: "approved", run_id: "r", detail: { approval: id }, ...link },
  ];
  const answer = (event: string, subject: string) => ({ event, subject, call: 1, answered: 2 });
  const answers = [
    answer("intended", "r/0"),
    answer("approved", id),
    answer("intended", "r/1"),
    answer("denied", id),
  ];
  const positions = positionsOf(records, answers);
  expect(positions).toEqual([0, 1, undefined, undefined]);
  expect(ledgerHistory(answers, positions).map(({ arg }) => arg)).toEqual([1, 2]);
});
