/**
 * Counts by name with a bounded number of names: if an agent calls a million invented tools, most of them share one
 * line.
 */

const MAX_TALLY_NAMES = 5_000;
const OTHER_NAMES = "(others)";

export class BoundedTally<C extends string> {
  private readonly columns: readonly C[];
  private readonly rows = new Map<string, Record<C, number>>();

  constructor(columns: readonly C[]) {
    this.columns = columns;
  }

  add(name: string, column: C, by: 1 | -1 = 1): void {
    const known = this.rows.get(name);
    if (known !== undefined) known[column] += by;
    else if (this.rows.size < MAX_TALLY_NAMES || name === OTHER_NAMES)
      this.rows.set(name, { ...this.zeros(), [column]: by });
    else this.add(OTHER_NAMES, column, by);
  }

  /** Largest counts first; equal ones by name. */
  list(): (Record<C, number> & { name: string })[] {
    const sum = (row: Record<C, number>) => this.columns.reduce((total, column) => total + row[column], 0);
    return [...this.rows]
      .map(([name, row]) => ({ name, ...row }))
      .sort((a, b) => sum(b) - sum(a) || (a.name < b.name ? -1 : 1));
  }

  private zeros(): Record<C, number> {
    return Object.fromEntries(this.columns.map((column) => [column, 0])) as Record<C, number>;
  }
}
