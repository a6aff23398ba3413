/** What a cluster run found, as a table and a few lines. */
import type { Findings } from "../audit.ts";
import type { Checked } from "./verdict.ts";

export interface ClusterRow {
  fault: string;
  trials: number;
  /** Answers that were given from this fault to the next one, and those of them that the ledger does not have. */
  answers: number;
  lost: number;
  longest_gap_ms: number;
}

export interface Report {
  rows: ClusterRow[];
  minutes: number;
  findings: Findings;
  records: number;
  refused: number;
  abandoned: number;
  checked: Checked;
  /** The checker must refuse a changed history of each model. */
  believed_lies: string[];
  problems: string[];
}

export function isCleanReport({ rows, findings, checked, believed_lies, problems }: Report): boolean {
  const wrong = Object.values(findings).reduce((sum, count) => sum + count, 0);
  const verdicts = checked.illegal.length + checked.undecided.length + believed_lies.length;
  return wrong + verdicts + problems.length === 0 && rows.length > 0 && checked.operations > 0;
}

export function reportText(report: Report): string {
  const { rows, findings, checked } = report;
  const number = (value: number): string => value.toLocaleString("en-US");
  const cells = [
    ["fault", "trials", "answers", "lost", "longest outage"],
    ...rows.map(({ fault, trials, answers, lost, longest_gap_ms }) => [
      fault,
      number(trials),
      number(answers),
      number(lost),
      `${(longest_gap_ms / 1_000).toFixed(1)} s`,
    ]),
  ];
  const widths = cells[0]!.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)));
  const pad = (cell: string, i: number): string =>
    i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!);
  return [
    ...cells.map((line) => line.map(pad).join("  ")),
    `${report.minutes.toFixed(1)} minutes, ${number(report.records)} records, ${number(report.refused)} requests without an answer`,
    `lost ${findings.lost}, forks ${findings.forks}, broken chains ${findings.broken_chains}, half units ${findings.half_units}`,
    `checker: ${number(checked.operations)} operations on ${number(checked.objects)} objects: ${checked.illegal.length} impossible, ${checked.undecided.length} undecided`,
    ...Object.entries(checked.per_model).map(([model, count]) => `  ${model}: ${number(count)} operations`),
    ...checked.illegal.slice(0, 10).map((object) => `impossible: ${object}`),
    ...report.believed_lies.map((model) => `the checker believed a changed history: ${model}`),
    ...report.problems,
    isCleanReport(report) ? "ok" : "FAILED",
  ].join("\n");
}
