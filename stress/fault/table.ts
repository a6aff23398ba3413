/** Prints rows as one table. */
import type { Findings } from "./audit.ts";
import { isClean, type Row } from "./row.ts";

/** Checks that a test makes itself are not shown as counts. */
const counted =
  (name: "answers" | keyof Findings) =>
  (row: Row): string | number =>
    row.is_test ? "-" : row[name];

const COLUMNS: readonly [head: string, cell: (row: Row) => string | number][] = [
  ["store", (row) => row.store],
  ["fault", (row) => row.fault],
  ["trials", (row) => row.trials],
  ["answers", counted("answers")],
  ["lost", counted("lost")],
  ["forks", counted("forks")],
  ["broken chains", counted("broken_chains")],
  ["bare allows", counted("bare_allows")],
  ["half units", counted("half_units")],
  [
    "",
    (row) => (isClean(row) ? (row.is_test ? "passed" : "ok") : row.trials === 0 ? "NOTHING HIT" : "FAILED"),
  ],
];

export function table(rows: readonly Row[]): string {
  const cells = [
    COLUMNS.map(([head]) => head),
    ...rows.map((row) => COLUMNS.map(([, cell]) => text(cell(row)))),
  ];
  const widths = COLUMNS.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)));
  const isNumber = (i: number): boolean => i > 1 && i < COLUMNS.length - 1;
  const lines = cells.map((line) =>
    line
      .map((cell, i) => (isNumber(i) ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
  const problems = rows.flatMap(({ store, fault, problems }) =>
    problems.slice(0, 5).map((problem) => `${store}, ${fault}: ${problem}`),
  );
  return [...lines, ...problems].join("\n");
}

const text = (value: string | number): string =>
  typeof value === "number" ? value.toLocaleString("en-US") : value;
