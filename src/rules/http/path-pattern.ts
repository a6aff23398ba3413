/**
 * Paths of `http` manifests: literal text with `{name}` and `{name:digits}` places, compared segment by segment. A last
 * `{name:path}` takes the rest of the path.
 */

type Piece = { readonly text: string } | { readonly name: string; readonly digits?: true };
type Segment = readonly Piece[];

export interface PathPattern {
  /** Without the place that takes the rest. */
  readonly segments: readonly Segment[];
  /** Name of the place that takes the rest. */
  readonly rest?: string;
  readonly names: readonly string[];
}

const PLACE = /\{([^{}]*)\}/g;
const PLACE_NAME = /^([A-Za-z_][A-Za-z0-9_]{0,63})(:digits)?$/;
const REST_PLACE = /^\{([A-Za-z_][A-Za-z0-9_]{0,63}):path\}$/;
const DIGITS = /^\d+$/;
const MAX_PATH_CHARS = 2_000;

/** Reads a pattern, or returns its problem. Literal text is in its decoded form. */
export function parsePathPattern(text: string): PathPattern | { problem: string } {
  if (text.length > MAX_PATH_CHARS) return { problem: `is longer than ${MAX_PATH_CHARS} characters` };
  if (!text.startsWith("/")) return { problem: "must begin with /" };
  if (/[?#]/.test(text)) return { problem: "must not hold a query or a fragment; query fields become $args" };
  if (/[\\%\p{Cc}\s]/u.test(text))
    return { problem: "must hold plain characters: no spaces, backslashes, control characters or % escapes" };
  const parts = text.slice(1).split("/");
  if (parts.some((part, i) => part === "" && i < parts.length - 1))
    return { problem: "must not repeat slashes" };
  if (parts.includes(".") || parts.includes("..")) return { problem: "must not hold dot segments" };
  const rest = REST_PLACE.exec(parts.at(-1)!)?.[1];
  if (rest !== undefined) parts.pop();
  const segments: Segment[] = [];
  const names: string[] = rest === undefined ? [] : [rest];
  for (const part of parts) {
    const segment = parseSegment(part);
    if ("problem" in segment) return segment;
    segments.push(segment.pieces);
    for (const piece of segment.pieces) if ("name" in piece) names.push(piece.name);
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) return { problem: `names {${twice}} twice` };
  return rest === undefined ? { segments, names } : { segments, rest, names };
}

function parseSegment(text: string): { pieces: Piece[] } | { problem: string } {
  const pieces: Piece[] = [];
  let done = 0;
  for (const match of text.matchAll(PLACE)) {
    const [, name, digits] = PLACE_NAME.exec(match[1]!) ?? [];
    if (name === undefined)
      return { problem: "a place is a name in braces, such as {id}, {id:digits}, or a last {name:path}" };
    if (match.index > done) pieces.push({ text: text.slice(done, match.index) });
    else if (pieces.length > 0) return { problem: "two places in a segment need text between them" };
    pieces.push(digits === undefined ? { name } : { name, digits: true });
    done = match.index + match[0].length;
  }
  if (done < text.length) pieces.push({ text: text.slice(done) });
  if (pieces.some((piece) => "text" in piece && /[{}]/.test(piece.text)))
    return { problem: "holds a brace that is not part of a place such as {id}" };
  return { pieces };
}

/** Values of the places for a path in decoded segments. Undefined if the path does not fit. A place is never empty. */
export function matchPath(
  { segments, rest }: PathPattern,
  path: readonly string[],
): Record<string, string> | undefined {
  const left = path.slice(segments.length).join("/");
  if (rest === undefined ? segments.length !== path.length : left === "") return undefined;
  const found: Record<string, string> = rest === undefined ? {} : { [rest]: left };
  for (const [i, segment] of segments.entries())
    if (!matchSegment(segment, path[i]!, found)) return undefined;
  return found;
}

/** Each placeholder takes as little as possible, and the last one the rest. */
function matchSegment(segment: Segment, text: string, found: Record<string, string>): boolean {
  let at = 0;
  for (const [i, piece] of segment.entries()) {
    if ("text" in piece) {
      if (!text.startsWith(piece.text, at)) return false;
      at += piece.text.length;
      continue;
    }
    const next = segment[i + 1];
    const end = next === undefined ? text.length : endOfPlace(text, at, next, i + 2 === segment.length);
    if (end <= at) return false;
    const value = text.slice(at, end);
    if (piece.digits === true && !DIGITS.test(value)) return false;
    found[piece.name] = value;
    at = end;
  }
  return at === text.length;
}

function endOfPlace(text: string, at: number, next: Piece, isLast: boolean): number {
  if (!("text" in next)) return -1;
  if (isLast) return text.endsWith(next.text) ? text.length - next.text.length : -1;
  return text.indexOf(next.text, at + 1);
}

/** Whether some path fits both patterns. Errs towards yes. */
export function canBothFit(a: PathPattern, b: PathPattern): boolean {
  const [short, long] = a.segments.length <= b.segments.length ? [a, b] : [b, a];
  const lengthsMeet =
    short.segments.length === long.segments.length
      ? (a.rest === undefined) === (b.rest === undefined)
      : short.rest !== undefined;
  return lengthsMeet && short.segments.every((segment, i) => segmentsMeet(segment, long.segments[i]!));
}

/** A place is one or more of any character: walks both segments at once. */
function segmentsMeet(a: Segment, b: Segment): boolean {
  const left = symbolsOf(a);
  const right = symbolsOf(b);
  const seen = new Set<number>();
  const open: [number, number][] = [[0, 0]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [i, j] = pair;
    if (i === left.length && j === right.length) return true;
    const key = i * (right.length + 1) + j;
    if (i > left.length || j > right.length || seen.has(key)) continue;
    seen.add(key);
    const [x, y] = [left[i], right[j]];
    if (x === undefined || y === undefined) continue;
    if (!symbolsMeet(x, y)) continue;
    open.push([i + 1, j + 1]);
    if (typeof x !== "string") open.push([i, j + 1]);
    if (typeof y !== "string") open.push([i + 1, j]);
  }
  return false;
}

/** A character, or the characters that a placeholder takes. */
type PathSymbol = string | { readonly digits: boolean };

function symbolsMeet(x: PathSymbol, y: PathSymbol): boolean {
  if (typeof x !== "string") return typeof y !== "string" || !x.digits || DIGITS.test(y);
  return typeof y === "string" ? x === y : symbolsMeet(y, x);
}

const symbolsOf = (segment: Segment): PathSymbol[] =>
  segment.flatMap((piece): PathSymbol[] =>
    "text" in piece ? [...piece.text] : [{ digits: piece.digits === true }],
  );

/** The path of a request with these values, percent-encoded. Undefined if a value is missing or does not fit its place. */
export function fillPath({ segments, rest }: PathPattern, values: Readonly<Record<string, unknown>>) {
  const parts: string[] = [];
  for (const segment of segments) {
    let part = "";
    for (const piece of segment) {
      const value = "text" in piece ? piece.text : textOf(values[piece.name]);
      if (value === undefined) return undefined;
      if ("name" in piece && piece.digits === true && !DIGITS.test(value)) return undefined;
      part += value;
    }
    parts.push(part);
  }
  const left = rest === undefined ? [] : textOf(values[rest])?.split("/");
  if (left === undefined || left.slice(0, -1).includes("")) return undefined;
  const all = [...parts, ...left];
  if (parts.some((part) => part.includes("/")) || !all.every(isSegmentText)) return undefined;
  return `/${all.map(encodeSegment).join("/")}`;
}

const isSegmentText = (text: string): boolean => text !== "." && text !== ".." && !/[\\\p{Cc}]/u.test(text);

const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/%(3A|40|24|2C|2B|3D|26)/g, decodeURIComponent);

function textOf(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
