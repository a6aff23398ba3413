/** The shape of the catalogue: statements of the interface documents, grouped by section. */

/** The interface documents; their text is not in this repository. */
export type Source = "core" | "operations" | "contract" | "beyond";

/** The number of the issue that delivers a statement. */
// biome-ignore format: one line a stage
export type Issue =
  | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 14 | 15 | 16 | 17 | 18 | 19 | 20 | 21 | 22 | 23 | 24
  | 33 | 34 | 35 | 36 | 37 | 38 | 39 | 40 | 41 | 42 | 43 | 44;

export interface Requirement<Id extends string = string> {
  readonly id: Id;
  readonly source: Source;
  readonly section: string;
  /** One testable fact in our own words; fixed wordings of the interface are quoted to the letter. */
  readonly text: string;
  readonly issue: Issue;
}

/** One section of a document; a row is `id: [issue, text]`, so that a repeated id fails to compile. */
export function section<const Id extends string>(
  source: Source,
  title: string,
  rows: Readonly<Record<Id, readonly [Issue, string]>>,
): readonly Requirement<Id>[] {
  const entries = Object.entries(rows) as [Id, readonly [Issue, string]][];
  return entries.map(([id, [issue, text]]) => ({ id, source, section: title, text, issue }));
}
