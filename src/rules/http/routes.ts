/** Finds the `http` manifest that a request fits, and reads the request's arguments. Pure functions. */
import { SvcError } from "../../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJsonBytes } from "../../kernel/json/json.ts";
import type { ToolManifest } from "../manifest/types.ts";
import {
  fitsGraphqlRoute,
  type GraphqlRoute,
  graphqlBody,
  graphqlRoutesMeet,
  parseGraphqlRoute,
  readGraphqlRequest,
} from "./graphql/call.ts";
import { canBothFit, fillPath, matchPath, type PathPattern, parsePathPattern } from "./path-pattern.ts";
import { type HttpProblem, type HttpTarget, isHttpProblem, readFields } from "./target.ts";

export type HttpSpec = NonNullable<ToolManifest["http"]>;

/** A tool as far as its requests are concerned. */
export type HttpTool = Pick<ToolManifest, "tool" | "http">;

/** The tools whose requests are governed, such as a manifest set. */
export interface HttpToolSet {
  readonly all: readonly HttpTool[];
  active(tool: string): HttpTool | undefined;
}

export interface HttpRoute {
  readonly tool: string;
  readonly http: HttpSpec;
  readonly path: PathPattern;
  readonly graphql?: GraphqlRoute;
}

/** Where a request goes: `host` in lower case, the port always given. */
export interface HttpOrigin {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** The origin of a manifest, with the port of its scheme where it names none. */
export function originOf({ scheme, host }: Pick<HttpSpec, "scheme" | "host">): HttpOrigin {
  const { name, port } = splitHost(host);
  return { scheme, host: name, port: port ?? DEFAULT_PORTS[scheme] };
}

/** Splits `host:port`; an IPv6 address loses its brackets. */
export function splitHost(text: string): { name: string; port: number | undefined } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  if (match === null) return { name: "", port: undefined };
  const name = (match[1] ?? match[2] ?? "").toLowerCase().replace(/(?<!\.)\.+$/, "");
  return { name, port: match[3] === undefined ? undefined : Number(match[3]) };
}

/** `host:port` as in a URL or a Host header, without the port of the scheme. */
export function hostText({ scheme, host, port }: HttpOrigin): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === DEFAULT_PORTS[scheme] ? name : `${name}:${port}`;
}

const originKey = ({ scheme, host, port }: HttpOrigin): string => `${scheme}://${host}:${port}`;

/** Routes of a manifest set by origin and method. Only the active version of a tool has one. */
export class HttpRoutes {
  readonly origins: readonly HttpOrigin[];
  private readonly byOrigin = new Map<string, HttpRoute[]>();
  private readonly byTool = new Map<string, HttpRoute>();

  constructor(manifests: HttpToolSet) {
    const origins = new Map<string, HttpOrigin>();
    for (const manifest of manifests.all) {
      const { tool, http } = manifest;
      if (http === undefined || manifests.active(tool) !== manifest) continue;
      const path = parsePathPattern(http.path);
      if ("problem" in path) continue;
      const origin = originOf(http);
      origins.set(originKey(origin), origin);
      const graphql = graphqlOf(http);
      const route = { tool, http, path, ...(graphql === undefined ? {} : { graphql }) };
      this.byTool.set(tool, route);
      const key = `${http.method} ${originKey(origin)}`;
      const others = this.byOrigin.get(key);
      if (others === undefined) this.byOrigin.set(key, [route]);
      else others.push(route);
    }
    this.origins = [...origins.values()];
  }

  /** Routes that the request fits: one, none, or several from sets that were loaded separately. */
  fitting(origin: HttpOrigin, method: string, { segments, query }: HttpTarget): RouteMatch[] {
    const routes = this.byOrigin.get(`${method} ${originKey(origin)}`) ?? [];
    return routes.flatMap((route) => {
      const places = matchPath(route.path, segments);
      const fits = places !== undefined && takesQuery(route.http, query.keys());
      return fits ? [{ route, places }] : [];
    });
  }

  ofTool(tool: string): HttpRoute | undefined {
    return this.byTool.get(tool);
  }
}

/** Without `http.query` every field is allowed. */
const takesQuery = ({ query }: HttpSpec, names: Iterable<string>): boolean =>
  query === undefined || [...names].every((name) => query.includes(name));

function graphqlOf({ graphql }: HttpSpec): GraphqlRoute | undefined {
  const route = graphql === undefined ? undefined : parseGraphqlRoute(graphql);
  return route === undefined || "problem" in route ? undefined : route;
}

export interface RouteMatch {
  readonly route: HttpRoute;
  readonly places: Readonly<Record<string, string>>;
}

const known = new WeakMap<HttpToolSet, HttpRoutes>();

export function httpRoutes(manifests: HttpToolSet): HttpRoutes {
  let routes = known.get(manifests);
  if (routes === undefined) {
    routes = new HttpRoutes(manifests);
    known.set(manifests, routes);
  }
  return routes;
}

/** Problems of entries whose requests another tool's entry fits too: `[index, other index]`. */
export function routeClashes(all: readonly ToolManifest[]): [number, number][] {
  const byKey = new Map<string, { at: number; tool: string; path: PathPattern; http: HttpSpec }[]>();
  const clashes: [number, number][] = [];
  for (const [at, { tool, http }] of all.entries()) {
    if (http === undefined) continue;
    const path = parsePathPattern(http.path);
    if ("problem" in path) continue;
    const key = `${http.method} ${originKey(originOf(http))}`;
    const others = byKey.get(key) ?? [];
    for (const other of others)
      if (other.tool !== tool && canBothFit(other.path, path) && !areOtherFields(other.http, http))
        clashes.push([at, other.at]);
    others.push({ at, tool, path, http });
    byKey.set(key, others);
  }
  return clashes;
}

function areOtherFields(a: HttpSpec, b: HttpSpec): boolean {
  const [one, two] = [graphqlOf(a), graphqlOf(b)];
  return one !== undefined && two !== undefined && !graphqlRoutesMeet(one, two);
}

/** The body of a request as the arguments need it. */
export interface RequestBody {
  readonly type: string | undefined;
  readonly bytes: number;
  readonly sha256: string;
  /** Undefined for a body that was too long to keep in memory. */
  readonly content: Uint8Array | undefined;
}

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;|$)/i;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** A server that honors another charset than the proxy's would read other values. */
const UTF_8_PROBLEM: HttpProblem = { status: 415, problem: "the charset of the body is not UTF-8" };
const CHARSET = /charset[*\d]*\s*=[\s"']*([^\s"';,]*)/gi;

const hasOtherCharset = (type: string): boolean =>
  Array.from(type.matchAll(CHARSET)).some(([, name]) => !/^(?:utf-?8|us-ascii)$/i.test(name!));

/** Many web frameworks take it for the method. */
const METHOD_FIELD = "_method";

/**
 * The manifest that a GraphQL request fits, with its arguments: the one of its field, else the one of its kind. Undefined
 * if it fits none.
 */
export function graphqlMatch(
  matches: readonly RouteMatch[],
  { query }: HttpTarget,
  body: RequestBody,
): { route: HttpRoute; args: JsonObject } | HttpProblem | undefined {
  // Some servers prefer a query in the address.
  if (query.size > 0) return { status: 400, problem: "a GraphQL request has no fields in its address" };
  if (body.content === undefined) return { status: 413, problem: "the body is longer than 1 MB" };
  if (!JSON_TYPE.test(body.type ?? "")) return { status: 415, problem: "a GraphQL request is sent as JSON" };
  if (hasOtherCharset(body.type ?? "")) return UTF_8_PROBLEM;
  const read = jsonArgs(body.content);
  if (isHttpProblem(read)) return read;
  const request = readGraphqlRequest(read);
  if ("problem" in request) return { status: 400, problem: request.problem };
  const routes = matches.map(({ route }) => route);
  const named = routes.find(({ graphql }) => graphql !== undefined && fitsGraphqlRoute(graphql, request));
  if (named !== undefined) return { route: named, args: request.args };
  const route = routes.find(({ graphql }) => graphql?.field === undefined && graphql?.kind === request.kind);
  return route === undefined ? undefined : { route, args: request.body };
}

const TWICE_PROBLEM: HttpProblem = {
  status: 400,
  problem: "a name is in two of path, query and body, or repeated",
};

/** `$args` from path, query and body. A name in two of them is refused. */
export function requestArgs(
  { route: { http }, places }: RouteMatch,
  { query }: HttpTarget,
  body: RequestBody,
): { args: JsonObject } | HttpProblem {
  const read = bodyArgs(http, body);
  if (isHttpProblem(read)) return read;
  const args: JsonObject = {};
  for (const part of [Object.entries(places), [...query], Object.entries(read)])
    for (const [name, value] of part) {
      if (name === METHOD_FIELD)
        return { status: 400, problem: "the field _method overrides the method; send the method itself" };
      if (Object.hasOwn(args, name)) return TWICE_PROBLEM;
      Object.defineProperty(args, name, { value, enumerable: true, configurable: true, writable: true });
    }
  return hasListAndValue(args) ? TWICE_PROBLEM : { args };
}

/** Many servers read `a[]` and `a[0]` as the field `a`. */
const hasListAndValue = (args: JsonObject): boolean =>
  Object.keys(args).some(
    (name) => name.indexOf("[") > 0 && Object.hasOwn(args, name.slice(0, name.indexOf("["))),
  );

function bodyArgs({ body: kind }: HttpSpec, body: RequestBody): JsonObject | HttpProblem {
  if (kind === "opaque") return { body: { bytes: body.bytes, sha256: body.sha256 } };
  if (body.bytes === 0) return {};
  if (body.content === undefined) return { status: 413, problem: "the body is longer than 1 MB" };
  const type = body.type ?? "";
  if (hasOtherCharset(type)) return UTF_8_PROBLEM;
  if (JSON_TYPE.test(type) && kind !== "form") return jsonArgs(body.content);
  if (FORM_TYPE.test(type) && kind !== "json") {
    if (!/^[\x20-\x7e]*$/.test(latin1(body.content)))
      return { status: 400, problem: "the form holds a character that must be encoded" };
    const fields = readFields(latin1(body.content), "the form");
    return isHttpProblem(fields) ? fields : Object.fromEntries(fields);
  }
  const wanted = kind === undefined ? "JSON or a form" : kind === "json" ? "JSON" : "a form";
  return {
    status: 415,
    problem: `this tool takes ${wanted}; for other content set http.body to opaque in its manifest`,
  };
}

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

function jsonArgs(content: Uint8Array): JsonObject | HttpProblem {
  try {
    const value = parseJsonBytes(content);
    return isJsonObject(value) ? value : { body: value };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return { status: 400, problem: `the body is not strict JSON: ${error.message}` };
  }
}

/** A request that calls a tool with these arguments, for undos and reads. */
export interface BuiltRequest {
  readonly method: string;
  readonly origin: HttpOrigin;
  /** Path and query, encoded. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

const IN_QUERY = new Set(["GET", "HEAD", "DELETE", "OPTIONS"]);

/** A form says that a field is unset by sending it empty; a query has no word for that. */
function fieldText(value: JsonValue, isForm: boolean): string | undefined {
  if (value === null) return isForm ? "" : undefined;
  return typeof value === "object" ? undefined : String(value);
}

/** Places go into the path; other arguments into the query, or the body of a method that has one. */
export function buildRequest(route: HttpRoute, args: JsonValue): BuiltRequest | { problem: string } {
  const { http, path, graphql } = route;
  if (!isJsonObject(args)) return { problem: "its arguments are not an object" };
  if (graphql !== undefined) {
    const built = graphqlBody(graphql, args);
    return "problem" in built ? built : { ...jsonRequest(built.body), ...placeOf(http, fillPath(path, {})!) };
  }
  const filled = fillPath(path, args);
  if (filled === undefined) return { problem: "its arguments do not fill the places of http.path" };
  const rest = Object.entries(args).filter(([name]) => !path.names.includes(name));
  const place = placeOf(http, filled);
  if (rest.length === 0) return { ...place, headers: {}, body: undefined };
  if (http.body === "opaque") return { problem: "http.body is opaque, so no body can be built for it" };
  const inQuery = IN_QUERY.has(http.method) && (http.method !== "DELETE" || http.body === undefined);
  if (inQuery || http.body === "form") {
    const pairs = rest.map(([name, value]) => [name, fieldText(value, !inQuery)]);
    if (pairs.some(([, value]) => value === undefined))
      return { problem: "a query or a form takes texts, numbers and booleans only" };
    const fields = new URLSearchParams(pairs as [string, string][]);
    if (inQuery && !takesQuery(http, fields.keys())) return { problem: "an argument is not in http.query" };
    if (inQuery) return { ...place, target: `${filled}?${fields}`, headers: {}, body: undefined };
    return {
      ...place,
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: fields.toString(),
    };
  }
  const [only] = rest;
  // A list or an object under this name alone is the whole body; a text is a member of it.
  const isPlainBody = rest.length === 1 && only![0] === "body" && typeof only![1] === "object";
  return { ...place, ...jsonRequest(isPlainBody ? only![1] : Object.fromEntries(rest)) };
}

const placeOf = (http: HttpSpec, target: string) => ({ method: http.method, origin: originOf(http), target });

const jsonRequest = (value: JsonValue) => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});
