/**
 * Drafts `http` manifests from an OpenAPI document: reads, pairs of create and delete, updates with a read before them,
 * and the rest as irreversible. Every guess is marked.
 */
import { ProblemsError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json/json.ts";
import { readManifests } from "../rules/manifest/load.ts";

const METHODS = ["get", "head", "post", "put", "patch", "delete", "options"] as const;
type Method = (typeof METHODS)[number];

interface ApiOperation {
  readonly tool: string;
  readonly method: Method;
  /** With the base path, and places that manifests accept. */
  readonly path: string;
  readonly places: readonly string[];
  readonly operation: JsonObject;
}

interface ApiDraft {
  readonly text: string;
  readonly tools: number;
  readonly reads: number;
  readonly undoable: number;
  readonly left_out: number;
}

/** Whether a document looks like OpenAPI. */
export const isOpenapi = (document: JsonValue): document is JsonObject =>
  isJsonObject(document) &&
  (typeof document["openapi"] === "string" || typeof document["swagger"] === "string") &&
  isJsonObject(document["paths"]);

/** `from` is the document's own URL, for servers that are relative to it. */
export function draftHttpManifests(document: JsonObject, name: string, from: string | null): ApiDraft {
  const server = serverOf(document, from);
  const operations = operationsOf(document, name, server.base);
  const head = [
    "# Draft http manifests, written by svc init. Every line with `guess:` was guessed from the API description.",
    "# Read them, correct the guesses, and set `lifecycle: approved`: in enforce mode a draft does not count.",
    "- tool: net.connect",
    "  effect: irreversible",
    "  permission: net.connect",
  ];
  let text = `${head.join("\n")}\n`;
  const counts = { tools: 0, reads: 0, undoable: 0, left_out: 0 };
  for (const operation of operations) {
    const { lines, kind } = draftOf(operation, operations, document, server);
    const entry = `\n${lines.join("\n")}\n`;
    const problem = problemOf(text + entry);
    if (problem === null) {
      text += entry;
      counts.tools++;
      if (kind === "read") counts.reads++;
      if (kind === "undoable") counts.undoable++;
    } else {
      text += `\n# left out: ${operation.method.toUpperCase()} ${oneLine(operation.path)}: ${oneLine(problem)}\n`;
      counts.left_out++;
    }
  }
  return { text, ...counts };
}

function problemOf(text: string): string | null {
  try {
    readManifests([{ file: "draft", text }]);
    return null;
  } catch (error) {
    if (!(error instanceof ProblemsError)) throw error;
    return error.problems[0]!.replace(/^draft:\d+: /, "");
  }
}

const oneLine = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, " ").slice(0, 300);

interface ApiServer {
  readonly scheme: string;
  readonly host: string;
  readonly base: string;
  readonly guessed: boolean;
}

function serverOf(document: JsonObject, from: string | null): ApiServer {
  const [first] = Array.isArray(document["servers"]) ? document["servers"] : [];
  const template =
    isJsonObject(first) && typeof first["url"] === "string" ? first["url"] : oldServer(document);
  const variables = isJsonObject(first) && isJsonObject(first["variables"]) ? first["variables"] : {};
  const url = template.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const variable = variables[name];
    return isJsonObject(variable) && typeof variable["default"] === "string" ? variable["default"] : name;
  });
  const base = URL.canParse(url, from ?? undefined) ? new URL(url, from ?? undefined) : null;
  if (base === null || !/^https?:$/.test(base.protocol))
    return { scheme: "https", host: "api.example.com", base: "", guessed: true };
  return {
    scheme: base.protocol.slice(0, -1),
    host: base.host,
    base: base.pathname.replace(/(?<!\/)\/+$/, ""),
    guessed: false,
  };
}

/** The server of the older format, with separate host and path. */
function oldServer({ host, basePath, schemes }: JsonObject): string {
  const scheme = Array.isArray(schemes) && typeof schemes[0] === "string" ? schemes[0] : "https";
  const path = typeof basePath === "string" ? basePath : "";
  return typeof host === "string" ? `${scheme}://${host}${path}` : path;
}

function operationsOf(document: JsonObject, name: string, base: string): ApiOperation[] {
  const found: ApiOperation[] = [];
  const taken = new Set<string>(["net.connect"]);
  for (const [raw, item] of Object.entries(document["paths"] as JsonObject)) {
    if (!isJsonObject(item)) continue;
    const places: string[] = [];
    const path = `${base}${raw}`.replace(/\{([^{}]*)\}/g, (_, place: string) => {
      const own = place.replace(/\W/g, "_").replace(/^(?=\d)/, "_");
      places.push(own);
      return `{${own}}`;
    });
    for (const method of METHODS) {
      const operation = item[method];
      if (!isJsonObject(operation)) continue;
      const id = typeof operation["operationId"] === "string" ? operation["operationId"] : `${method}${raw}`;
      const plain = id.replace(/[^A-Za-z0-9_.-]+/g, "_").replace(/^_+|(?<!_)_+$/g, "") || method;
      let tool = `${name}.${plain}`;
      for (let n = 2; taken.has(tool); n++) tool = `${name}.${plain}_${n}`;
      taken.add(tool);
      found.push({ tool, method, path, places, operation });
    }
  }
  return found;
}

type DraftKind = "read" | "undoable" | "irreversible";

function draftOf(
  one: ApiOperation,
  all: readonly ApiOperation[],
  document: JsonObject,
  server: ApiServer,
): { lines: string[]; kind: DraftKind } {
  const at = (method: Method, path: string) =>
    all.find((other) => other.method === method && other.path === path);
  const effect = effectOf(one, at, all, document);
  const guess = server.guessed ? "   # guess: the description names no server" : "";
  const lines = [
    `- tool: ${one.tool}`,
    "  lifecycle: draft",
    `  effect: ${effect.effect}   # guess: ${effect.why}`,
    `  permission: ${one.tool.split(".")[0]}.${effect.kind === "read" ? "read" : "write"}`,
    `  http: ${JSON.stringify({
      ...(server.scheme === "https" ? {} : { scheme: server.scheme }),
      host: server.host,
      method: one.method.toUpperCase(),
      path: one.path,
      ...(isOpaque(one, document) ? { body: "opaque" } : {}),
    })}${guess}`,
    ...effect.lines,
  ];
  return { lines, kind: effect.kind };
}

interface DraftedEffect {
  readonly effect: string;
  readonly why: string;
  readonly kind: DraftKind;
  readonly lines: readonly string[];
}

const KEPT = (places: readonly string[]) => Object.fromEntries(places.map((name) => [name, `$args.${name}`]));

function effectOf(
  one: ApiOperation,
  at: (method: Method, path: string) => ApiOperation | undefined,
  all: readonly ApiOperation[],
  document: JsonObject,
): DraftedEffect {
  const { method, path, places } = one;
  if (method === "get" || method === "head" || method === "options")
    return { effect: "read", why: `${method.toUpperCase()} reads`, kind: "read", lines: [] };
  const created = method === "post" ? deletionBelow(path, all) : undefined;
  if (created !== undefined) return creation(one, created, at("get", created.path), document);
  const read = method === "put" || method === "patch" ? at("get", path) : undefined;
  if (read === undefined)
    return {
      effect: "irreversible",
      why: "nothing in the description undoes it",
      kind: "irreversible",
      lines: [],
    };
  const removal = method === "put" ? at("delete", path) : undefined;
  const compensation = {
    tool: one.tool,
    args: { ...KEPT(places), body: "$before.body" },
    kind: "inverse",
    ...(removal === undefined ? {} : { when_absent: { tool: removal.tool, args: KEPT(places) } }),
  };
  return {
    effect: "reversible",
    why: `${read.tool} reads what it replaces`,
    kind: "undoable",
    lines: [
      `  before: ${JSON.stringify({ tool: read.tool, args: KEPT(places), absent: { status: 404 } })}   # guess: it reads the same resource`,
      `  compensation: ${JSON.stringify(compensation)}   # guess: it accepts its own representation`,
      `  verification: ${JSON.stringify({ tool: read.tool, args: KEPT(places), expect: "$before" })}   # guess: the read shows all that the undo restores`,
    ],
  };
}

/** The deletion of what a collection creates: the same path and one place more. */
function deletionBelow(path: string, all: readonly ApiOperation[]): ApiOperation | undefined {
  return all.find(
    (other) =>
      other.method === "delete" &&
      other.path.startsWith(`${path}/`) &&
      /^\{\w+\}$/.test(other.path.slice(path.length + 1)),
  );
}

function creation(
  one: ApiOperation,
  removal: ApiOperation,
  read: ApiOperation | undefined,
  document: JsonObject,
): DraftedEffect {
  const place = removal.places.at(-1)!;
  const field = idField(one, place, document);
  const args = { ...KEPT(one.places), [place]: `$result.body.${field}` };
  const lines = [
    `  compensation: ${JSON.stringify({ tool: removal.tool, args, kind: "inverse" })}   # guess: it deletes what this creates, by the answer's ${field}`,
  ];
  if (read !== undefined)
    lines.push(
      `  verification: ${JSON.stringify({ tool: read.tool, args, expect: { status: 404 } })}   # guess: a deleted item answers 404`,
    );
  return { effect: "compensable", why: `${removal.tool} deletes what it creates`, kind: "undoable", lines };
}

/** The field of the answer that holds the new id. */
function idField({ operation }: ApiOperation, place: string, document: JsonObject): string {
  const responses = isJsonObject(operation["responses"]) ? operation["responses"] : {};
  const names = ["201", "200", "202", "default"].flatMap((status) =>
    Object.keys(propertiesOf(responses[status], document)),
  );
  return [place, "id", "uuid", "name"].find((name) => names.includes(name)) ?? "id";
}

function propertiesOf(response: JsonValue | undefined, document: JsonObject): JsonObject {
  const plain = resolved(response, document);
  const content = isJsonObject(plain["content"]) ? Object.values(plain["content"])[0] : plain;
  const schema = isJsonObject(content) ? resolved(content["schema"], document) : {};
  return isJsonObject(schema["properties"]) ? schema["properties"] : {};
}

/** Follows one reference inside the document. */
function resolved(value: JsonValue | undefined, document: JsonObject): JsonObject {
  if (!isJsonObject(value)) return {};
  const reference = value["$ref"];
  if (typeof reference !== "string" || !reference.startsWith("#/")) return value;
  let at: JsonValue | undefined = document;
  for (const part of reference.slice(2).split("/"))
    at = isJsonObject(at) ? at[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  return isJsonObject(at) ? at : {};
}

/** Whether the body has a type other than JSON or a form. */
function isOpaque({ operation }: ApiOperation, document: JsonObject): boolean {
  const body = resolved(operation["requestBody"], document);
  const types = isJsonObject(body["content"]) ? Object.keys(body["content"]) : [];
  return types.length > 0 && !types.some((type) => /json|x-www-form-urlencoded/i.test(type));
}
