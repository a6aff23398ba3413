/**
 * Reads the target of a request strictly: what two programs could read differently is refused, so that the decided
 * request is the one that the server serves.
 */

/** A request that is answered with this status instead of being decided. */
export interface HttpProblem {
  readonly status: 400 | 413 | 415;
  readonly problem: string;
}

export interface HttpTarget {
  /** Decoded once. */
  readonly segments: readonly string[];
  readonly query: ReadonlyMap<string, string>;
}

const bad = (problem: string): HttpProblem => ({ status: 400, problem });

export const isHttpProblem = (value: object): value is HttpProblem => "problem" in value;

/** Reads a path with an optional query, as in the request line. */
export function readHttpTarget(text: string): HttpTarget | HttpProblem {
  const [path = "", ...rest] = text.split("?");
  if (!path.startsWith("/")) return bad("the path does not begin with /");
  if (/[^\x21-\x7e]|[#\\]/.test(text)) return bad("the path holds a character that must be encoded");
  if (/%(?:25)*(?:2f|5c|00)/i.test(path)) return bad("the path holds an encoded slash, backslash or NUL");
  const segments: string[] = [];
  const parts = path.slice(1).split("/");
  for (const [i, part] of parts.entries()) {
    if (part === "" && i < parts.length - 1) return bad("the path repeats a slash");
    const segment = decodeOnce(part);
    if (segment === undefined) return bad("the path is not valid percent-encoded UTF-8");
    if (isDotSegment(segment)) return bad("the path holds a dot segment");
    if (/\p{Cc}/u.test(segment)) return bad("the path holds an encoded control character");
    segments.push(segment);
  }
  const query = readFields(rest.join("?"), "the query");
  if (isHttpProblem(query)) return query;
  if ([...query.keys()].some((name) => OVERRIDE_FIELDS.has(name.toLowerCase())))
    return bad("a query field overrides the method or the headers; send these directly");
  return { segments, query };
}

/** Servers also drop `;` parameters, and some decode again. */
function isDotSegment(segment: string): boolean {
  const plain = segment.split(";", 1)[0]!.replace(/%(?:25)*2e/gi, ".");
  return plain === "." || plain === "..";
}

/** Reads `a=1&b=2`, from a query or a form. A repeated name is refused. */
export function readFields(text: string, where: string): Map<string, string> | HttpProblem {
  const fields = new Map<string, string>();
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    // Some servers also split at a semicolon.
    const semicolon = pair.indexOf(";");
    if (semicolon >= 0 && pair.includes("=", semicolon))
      return bad(`${where} holds a semicolon; write it as %3B`);
    const at = pair.indexOf("=");
    const name = decodeOnce((at < 0 ? pair : pair.slice(0, at)).replaceAll("+", " "));
    const value = decodeOnce(at < 0 ? "" : pair.slice(at + 1).replaceAll("+", " "));
    if (name === undefined || value === undefined) return bad(`${where} is not valid percent-encoded UTF-8`);
    if (fields.has(name)) return bad(`${where} repeats a name`);
    fields.set(name, value);
  }
  return fields;
}

function decodeOnce(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Google's and Rails' servers read these. */
const OVERRIDE_FIELDS = new Set(["$httpmethod", "$httpheaders", "_method", "x-http-method-override"]);
const OVERRIDE_HEADERS: ReadonlyMap<string, string> = new Map([
  ["x-http-method-override", "method"],
  ["x-http-method", "method"],
  ["x-method-override", "method"],
  ["x-original-url", "path"],
  ["x-rewrite-url", "path"],
]);
/** Headers that a request has once. */
const SINGLE_HEADERS = new Set([
  "host",
  "content-length",
  "content-type",
  "transfer-encoding",
  "authorization",
]);

/** Checks the header lines of a request, which come as they were sent: name and value in turn. */
export function headerProblem(raw: readonly string[]): HttpProblem | null {
  const seen = new Set<string>();
  for (let i = 0; i < raw.length; i += 2) {
    // Some servers do not tell an underscore from a hyphen.
    const name = raw[i]!.toLowerCase().replaceAll("_", "-");
    const part = OVERRIDE_HEADERS.get(name);
    if (part !== undefined) return bad(`a header overrides the ${part}; send the ${part} itself`);
    // The proxy removes the named headers, and the server would read the rest differently.
    const removed = name === "connection" ? raw[i + 1]!.toLowerCase().split(/[,\s]+/) : [];
    if (removed.some((one) => SINGLE_HEADERS.has(one.replaceAll("_", "-"))))
      return bad("the Connection header names a header of the request");
    if (SINGLE_HEADERS.has(name) && seen.has(name)) return bad(`the header ${name} is repeated`);
    seen.add(name);
  }
  if (seen.has("content-length") && seen.has("transfer-encoding"))
    return bad("the request has both content-length and transfer-encoding");
  return null;
}
