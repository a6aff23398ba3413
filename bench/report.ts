/** Rounds, medians and the table of ratios. Absolute figures depend on the machine; ratios of one run count. */

export interface Row {
  suite: string;
  what: string;
  /** The measured ratio, or a plain figure where `goal` is null. */
  value: number;
  unit?: string;
  goal: { at_least: number } | { at_most: number } | null;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Measures each contestant once per round, in turn, so that a slow minute of the machine hits all alike. */
export async function alternate<K extends string>(
  rounds: number,
  contestants: Record<K, () => Promise<number> | number>,
): Promise<Record<K, number[]>> {
  const names = Object.keys(contestants) as K[];
  const results = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) results[name].push(await contestants[name]());
  }
  return results;
}

/** The median over rounds of one contestant's figure against another's of the same round. */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, i) => value / to[i]!));
}

export function met({ value, goal }: Row): boolean | null {
  if (goal === null) return null;
  return "at_least" in goal ? value >= goal.at_least : value <= goal.at_most;
}

export function print(rows: readonly Row[]): void {
  const cells = rows.map((row) => [
    row.suite,
    row.what,
    `${row.value >= 100 ? Math.round(row.value).toLocaleString("en") : row.value.toFixed(2)}${row.unit ?? ""}`,
    row.goal === null ? "" : "at_least" in row.goal ? `>= ${row.goal.at_least}` : `<= ${row.goal.at_most}`,
    { true: "ok", false: "MISSED", null: "" }[String(met(row)) as "true"],
  ]);
  const head = ["suite", "what", "measured", "goal", ""];
  const widths = head.map((title, i) => Math.max(title.length, ...cells.map((cell) => cell[i]!.length)));
  for (const line of [head, widths.map((width) => "-".repeat(width)), ...cells]) {
    console.log(
      line
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    );
  }
}
