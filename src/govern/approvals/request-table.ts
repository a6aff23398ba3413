/**
 * Table of the approval requests in a group decision. Equal arguments appear once, different ones are columns, and rows
 * with an unusual value come first. Pure functions, the same on every surface.
 */
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import { visibleLine } from "../../kernel/text/escape-invisible.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { CardFormat } from "../../rules/manifest/card-template.ts";
import { sumAmounts } from "../../rules/policy/checks/decimal.ts";
import { formatCardValue, NOT_GIVEN_TEXT } from "../cards/text/format.ts";
import { valueRemarks } from "../cards/text/lookalikes.ts";
import { quotedName } from "../cards/text/names.ts";
import type { CardField } from "../cards/types.ts";

export interface TabledRequest {
  id: string;
  /** Arguments as the reader can see them; null if the values are not stored. */
  args: JsonValue | null;
  /** Card fields, for the format of each argument. */
  fields: readonly Pick<CardField, "path" | "as">[];
  /** Why the call needs an approval, as on its card. */
  causes?: readonly string[];
}

export interface TableCell {
  text: string;
  unusual: boolean;
}

export interface RequestTable {
  same: { name: string; text: string }[];
  columns: { name: string; range: string }[];
  /** Rows with an unusual value first, the others in request order. */
  rows: { id: string; cells: TableCell[]; unusual: boolean }[];
}

/** Requests that fit in one table, by number of rows and characters. */
export function requestsForTable<R extends Pick<TabledRequest, "args">>(requests: readonly R[]): R[] {
  let chars = 0;
  const fitting = requests.slice(0, SERVICE_LIMITS.group_rows).findIndex(({ args }) => {
    chars += JSON.stringify(args).length;
    return chars > SERVICE_LIMITS.group_chars;
  });
  return requests.slice(0, fitting < 0 ? SERVICE_LIMITS.group_rows : Math.max(1, fitting));
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
  addCauses(table, cells, requests);
  const rows = requests.map(({ id }, i) => ({
    id,
    cells: cells[i]!,
    unusual: cells[i]!.some((cell) => cell.unusual),
  }));
  table.rows = [...rows.filter(({ unusual }) => unusual), ...rows.filter(({ unusual }) => !unusual)];
  return table;
}

/** Adds a column of causes if they differ. A cause that most of the requests do not have is unusual. */
function addCauses(
  table: RequestTable,
  cells: readonly TableCell[][],
  requests: readonly TabledRequest[],
): void {
  const texts = requests.map(({ causes = [] }) => causes.join("; "));
  const different = new Set(texts);
  if (different.size < 2) return;
  table.columns.push({ name: "cause", range: `${different.size} different` });
  for (const [i, text] of texts.entries()) {
    const isCommon = texts.filter((other) => other === text).length * 2 > texts.length;
    cells[i]!.push({ text: text === "" ? NOT_GIVEN_TEXT : text, unusual: text !== "" && !isCommon });
  }
}

type Values = (JsonValue | undefined)[];

/** All arguments of the requests. Arguments that are not an object count as one. */
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

/** Quotes an argument's name, which the agent chose, unless it is plain. */
function argumentName(name: string): string {
  if (name === "") return "arguments";
  return PLAIN_NAME.test(name) ? name : visibleLine(quotedName(name), 400);
}

const keyOf = (value: JsonValue | undefined): string => (value === undefined ? "" : toCanonicalJson(value));
function cellText(value: JsonValue | undefined, as: CardFormat): string {
  if (value === undefined) return NOT_GIVEN_TEXT;
  const text = formatCardValue(value, as === "diff" ? "code" : as);
  const remarks = runAtOnce(valueRemarks(value));
  return remarks.length === 0 ? text : `${text} (${remarks.join("; ")})`;
}

const DECIMAL = /^-?\d{1,15}(?:\.\d{1,12})?$/;

/** Reads a number, including a number written as text. */
function numberOf(value: JsonValue | undefined): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && DECIMAL.test(value) ? Number(value) : null;
}

/**
 * Marks unusual values: a rare type, absent among mostly present values, a number more than five median deviations from
 * the median, otherwise a rare value or a text more than twice the usual length.
 */
export function unusualValues(values: readonly (JsonValue | undefined)[]): boolean[] {
  if (values.length < 3) return values.map(() => false);
  const numbers = values.map(numberOf);
  const rareKind = rare(values.map((value, i) => (numbers[i] === null ? kindOf(value) : "number")));
  const areNumbers = values.every((value, i) => value === undefined || numbers[i] !== null);
  const odd = areNumbers
    ? [farOff(numbers, () => 0)]
    : [rare(values.map(keyOf)), farOff(lengths(values), (m) => m)];
  return values.map((_, i) => rareKind[i]! || odd.some((one) => one[i]));
}

const kindOf = (value: JsonValue | undefined): string =>
  value === null ? "null" : Array.isArray(value) ? "list" : typeof value;
const lengths = (values: readonly (JsonValue | undefined)[]): (number | null)[] =>
  values.map((value) => (value === undefined ? null : keyOf(value).length));

/** If one key is at least half of all, marks keys that occur at most half as often. */
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
            numbers.reduce((sum, one) => sumAmounts(sum, one), 0),
            as,
          )} in total`
        : "";
    return `${low === high ? low : `${low} to ${high}`}${total}${rest}`;
  }
  const different = [...new Set(given.map((value) => cellText(value, as)))];
  const few = different.map((text) => visibleLine(text, FEW_CHARS + 1)).join(", ");
  const isFew = different.length <= FEW && few.length <= FEW_CHARS;
  return `${isFew ? few : formatCountOf(different.length, "different value")}${rest}`;
}

const SAME_CHARS = 60;

/** Summarizes a group decision in one line: number of requests, actor, and range of their values. */
export function groupQuestion(
  verb: "approve" | "deny",
  { tool, actor }: { tool: string; actor: string },
  { same, columns, rows }: RequestTable,
): string {
  const ranges = columns.map(({ name, range }) => `${name} ${range}`);
  const equal = same.map(({ name, text }) =>
    text.length > SAME_CHARS
      ? `the same ${name} (${formatCountOf(text.length, "character")})`
      : `${name} ${visibleLine(text, SAME_CHARS)}`,
  );
  const values = [...ranges, ...equal];
  const head = `${verb === "approve" ? "Approve" : "Deny"} ${formatCountOf(rows.length, "request")} for ${visibleLine(tool, 200)} by ${visibleLine(actor, 200)}`;
  return `${head}${values.length === 0 ? "" : `: ${values.join("; ")}`}?`;
}
