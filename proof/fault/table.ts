/** Prints rows as one table. */
import { isClean, type Row } from "./row.ts";

const COLUMNS: readonly [head: string, cell: (row: Row) => string | number][] = [
  ["store", (row) => row.store],
  ["fault", (row) => row.fault],
  ["trials", (row) => row.trials],
  ["answers", (row) => row.answers],
  ["lost", (row) => row.lost],
  ["forks", (row) => row.forks],
  ["broken chains", (row) => row.broken_chains],
  ["bare allows", (row) => row.bare_allows],
  ["half units", (row) => row.half_units],
  ["", (row) => (isClean(row) ? "ok" : row.trials === 0 ? "NOTHING HIT" : "FAILED")],
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
