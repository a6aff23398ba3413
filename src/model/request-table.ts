/**
 * Requests that are decided together, as a table: arguments that are equal are said once, those that differ are
 * columns, and rows with an unusual value come first. Pure functions, the same on every surface.
 */
import { canonical } from "../kernel/canonical.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { visibleLine } from "../kernel/visible.ts";
import { plural } from "../kernel/words.ts";
import { formatted, NOT_GIVEN } from "./card/format.ts";
import type { CardFormat } from "./card/template.ts";
import type { CardField } from "./card/types.ts";
import { addUp } from "./policy/decimal.ts";

export interface TabledRequest {
  id: string;
  /** As far as the reader may see them; null where the values are not kept. */
  args: Json | null;
  /** The fields of its card: how they show an argument is how the table does. */
  fields: readonly Pick<CardField, "path" | "as">[];
}

export interface TableCell {
  text: string;
  unusual: boolean;
}

export interface RequestTable {
  same: { name: string; text: string }[];
  columns: { name: string; range: string }[];
  /** Those with an unusual value first, the others in the order in which they came. */
  rows: { id: string; cells: TableCell[]; unusual: boolean }[];
}

/** As many as one table shows: so many rows, and so many characters. */
export function tableful<R extends Pick<TabledRequest, "args">>(requests: readonly R[]): R[] {
  let chars = 0;
  const fitting = requests.slice(0, LIMITS.group_rows).findIndex(({ args }) => {
    chars += JSON.stringify(args).length;
    return chars > LIMITS.group_chars;
  });
  return requests.slice(0, fitting < 0 ? LIMITS.group_rows : Math.max(1, fitting));
}

export function requestTable(requests: readonly TabledRequest[]): RequestTable {
  const table: RequestTable = { same: [], columns: [], rows: [] };
  const cells: TableCell[][] = requests.map(() => []);
  for (const { name, values } of argumentsOf(requests)) {
    const as = formatOf(requests, name);
    const label = argumentName(name);
    const first = values[0];
    if (new Set(values.map(keyOf)).size === 1) {
      table.same.push({ name: label, text: cellText(first, as) });
      continue;
    }
    const unusual = unusualValues(values);
    table.columns.push({ name: label, range: rangeOf(values, as) });
    for (const [i, value] of values.entries())
      cells[i]!.push({ text: cellText(value, as), unusual: unusual[i]! });
  }
  const rows = requests.map(({ id }, i) => ({
    id,
    cells: cells[i]!,
    unusual: cells[i]!.some((cell) => cell.unusual),
  }));
  table.rows = [...rows.filter(({ unusual }) => unusual), ...rows.filter(({ unusual }) => !unusual)];
  return table;
}

type Values = (Json | undefined)[];

/** Every argument that any of them has; of arguments that are no object, all of them as one. */
function argumentsOf(requests: readonly TabledRequest[]): { name: string; values: Values }[] {
  const names = new Set<string>();
  for (const { args } of requests)
    for (const name of isJsonObject(args) ? Object.keys(args) : [""]) names.add(name);
  return [...names].map((name) => ({
    name,
    values: requests.map(({ args }) => {
      if (!isJsonObject(args)) return name === "" ? args : undefined;
      return Object.hasOwn(args, name) ? args[name] : undefined;
    }),
  }));
}

function formatOf(requests: readonly TabledRequest[], name: string): CardFormat {
  return requests[0]?.fields.find(({ path }) => path === `$args.${name}`)?.as ?? "text";
}

const PLAIN_NAME = /^[\w-]+$/;

/** A name is the agent's choice: in quotes unless it is plain. */
function argumentName(name: string): string {
  if (name === "") return "arguments";
  return PLAIN_NAME.test(name) ? name : visibleLine(JSON.stringify(name), 200);
}

const keyOf = (value: Json | undefined): string => (value === undefined ? "" : canonical(value));
const cellText = (value: Json | undefined, as: CardFormat): string =>
  value === undefined ? NOT_GIVEN : formatted(value, as === "diff" ? "code" : as);

const DECIMAL = /^-?\d{1,15}(?:\.\d{1,12})?$/;

/** A number, also one that is written as text. */
function numberOf(value: Json | undefined): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && DECIMAL.test(value) ? Number(value) : null;
}

/**
 * Whether each value is unlike the others: of a rare type, or absent where it is mostly there; of numbers, more than
 * five median distances from the median; else a rare value, or a text more than twice as long as is usual.
 */
export function unusualValues(values: readonly (Json | undefined)[]): boolean[] {
  if (values.length < 3) return values.map(() => false);
  const numbers = values.map(numberOf);
  const rareKind = rare(values.map((value, i) => (numbers[i] === null ? kindOf(value) : "number")));
  const areNumbers = values.every((value, i) => value === undefined || numbers[i] !== null);
  const odd = areNumbers
    ? [farOff(numbers, () => 0)]
    : [rare(values.map(keyOf)), farOff(lengths(values), (m) => m)];
  return values.map((_, i) => rareKind[i]! || odd.some((one) => one[i]));
}

const kindOf = (value: Json | undefined): string =>
  value === null ? "null" : Array.isArray(value) ? "list" : typeof value;
const lengths = (values: readonly (Json | undefined)[]): (number | null)[] =>
  values.map((value) => (value === undefined ? null : keyOf(value).length));

/** Where one of them is at least half of all: those that come at most half as often as it. */
function rare(keys: readonly string[]): boolean[] {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const most = Math.max(...counts.values());
  if (most * 2 < keys.length) return keys.map(() => false);
  return keys.map((key) => counts.get(key)! * 2 <= most);
}

const DISTANCES = 5;

function farOff(values: readonly (number | null)[], least: (median: number) => number): boolean[] {
  const known = values.filter((value) => value !== null);
  if (known.length < 3) return values.map(() => false);
  const middle = medianOf(known);
  const usual = medianOf(known.map((value) => Math.abs(value - middle)));
  const limit = Math.max(DISTANCES * usual, least(middle));
  return values.map((value) => value !== null && Math.abs(value - middle) > limit);
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

const FEW = 3;
const FEW_CHARS = 60;

function rangeOf(values: Values, as: CardFormat): string {
  const given = values.filter((value) => value !== undefined);
  const missing = values.length - given.length;
  const rest = missing === 0 ? "" : `, not given in ${missing.toLocaleString("en")}`;
  const numbers = given.map(numberOf);
  if (numbers.every((value) => value !== null) && numbers.length > 0) {
    const sorted = given.toSorted((a, b) => numberOf(a)! - numberOf(b)!);
    const [low, high] = [cellText(sorted[0], as), cellText(sorted.at(-1), as)];
    const total =
      as === "money"
        ? `, ${cellText(
            numbers.reduce((sum, one) => addUp(sum, one), 0),
            as,
          )} in total`
        : "";
    return `${low === high ? low : `${low} to ${high}`}${total}${rest}`;
  }
  const different = [...new Set(given.map((value) => cellText(value, as)))];
  const few = different.map((text) => visibleLine(text, FEW_CHARS + 1)).join(", ");
  const isFew = different.length <= FEW && few.length <= FEW_CHARS;
  return `${isFew ? few : plural(different.length, "different value")}${rest}`;
}

const SAME_CHARS = 60;

/** What is about to be decided, in one line: how many, of whom, and the range of their values. */
export function groupQuestion(
  verb: "approve" | "deny",
  { tool, actor }: { tool: string; actor: string },
  { same, columns, rows }: RequestTable,
): string {
  const ranges = columns.map(({ name, range }) => `${name} ${range}`);
  const equal = same.map(({ name, text }) =>
    text.length > SAME_CHARS
      ? `the same ${name} (${plural(text.length, "character")})`
      : `${name} ${visibleLine(text, SAME_CHARS)}`,
  );
  const values = [...ranges, ...equal];
  const head = `${verb === "approve" ? "Approve" : "Deny"} ${plural(rows.length, "request")} for ${visibleLine(tool, 200)} by ${visibleLine(actor, 200)}`;
  return `${head}${values.length === 0 ? "" : `: ${values.join("; ")}`}?`;
}
