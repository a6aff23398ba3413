/**
 * Methods beside tools. Nothing governs them, so an upstream's resources, prompts and completions are out
 * of reach unless its configuration names them; then their parameters pass as they are. What stands beside
 * the parameters (`_meta`, answers to questions that the upstream may not ask) belongs to no method, and stays.
 */
import type { PASSTHROUGH } from "../config/sections/gateway.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import type { Cancellation } from "./cancellation.ts";
import { invalidParams, methodNotFound } from "./peer.ts";
import { failureOf } from "./upstream/failure.ts";
import type { Link } from "./upstream/link.ts";
import type { Upstream } from "./upstream/upstream.ts";

type Feature = (typeof PASSTHROUGH)[number];

/** How a method is passed on: lists are joined, the rest goes to the upstream that owns what it names. */
const LISTS: Record<string, { feature: Feature; member: string; key: string }> = {
  "prompts/list": { feature: "prompts", member: "prompts", key: "name" },
  "resources/list": { feature: "resources", member: "resources", key: "uri" },
  "resources/templates/list": { feature: "resources", member: "resourceTemplates", key: "uriTemplate" },
};
const SINGLES: Record<string, Feature> = {
  "prompts/get": "prompts",
  "resources/read": "resources",
  "resources/subscribe": "resources",
  "resources/unsubscribe": "resources",
  "completion/complete": "completions",
};
const MAX_PAGES = 100;

export interface PassRequest {
  method: string;
  params: JsonObject;
  /** What the client answers to an upstream that may ask it. */
  input: JsonObject | undefined;
  cancellation: Cancellation;
  /** The session's own connection to an upstream, where it has one. */
  own(upstream: Upstream): Promise<Link | undefined>;
  /** What an upstream of the newer era has to be told of the client. */
  meta(upstream: Upstream): JsonObject;
  /** Whether an answer may ask the client for input. */
  rounds(upstream: Upstream): boolean;
}

interface Target {
  upstream: Upstream;
  params: JsonObject;
}

export class Passthrough {
  private readonly upstreams: readonly Upstream[];
  /** Which upstream showed a prompt or resource, by `<member> <name>`, from the last lists. */
  private readonly owners = new Map<string, Upstream>();

  constructor(upstreams: readonly Upstream[]) {
    this.upstreams = upstreams;
  }

  has(feature: Feature): boolean {
    return this.upstreams.some(({ spec }) => spec.passthrough.includes(feature));
  }

  serves(method: string): boolean {
    const feature = Object.hasOwn(LISTS, method)
      ? LISTS[method]!.feature
      : Object.hasOwn(SINGLES, method)
        ? SINGLES[method]
        : undefined;
    return feature !== undefined && this.has(feature);
  }

  async handle(request: PassRequest): Promise<JsonObject> {
    const { method } = request;
    if (Object.hasOwn(LISTS, method)) return this.list(request, LISTS[method]!);
    if (Object.hasOwn(SINGLES, method)) return this.single(request, SINGLES[method]!);
    throw methodNotFound(method);
  }

  private allowed(feature: Feature, method: string): Upstream[] {
    const found = this.upstreams.filter(({ spec }) => spec.passthrough.includes(feature));
    if (found.length === 0)
      throw methodNotFound(method, `: no upstream has ${feature} in its passthrough list`);
    return found;
  }

  private async list(request: PassRequest, list: (typeof LISTS)[string]): Promise<JsonObject> {
    const items: Json[] = [];
    let meta: Json | undefined;
    for (const upstream of this.allowed(list.feature, request.method)) {
      if (!upstream.ok) continue;
      for await (const page of this.pages(request, upstream)) {
        meta ??= page["_meta"];
        const found = page[list.member];
        for (const item of Array.isArray(found) ? found : []) items.push(this.shown(upstream, list, item));
      }
    }
    return { [list.member]: items, ...(meta === undefined ? {} : { _meta: meta }) };
  }

  private async *pages(request: PassRequest, upstream: Upstream): AsyncGenerator<JsonObject> {
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { cursor: _, ...params } = request.params;
      const answer = await this.send(request, {
        upstream,
        params: cursor === undefined ? params : { ...params, cursor },
      });
      yield answer;
      const next = answer["nextCursor"];
      if (typeof next !== "string" || next === cursor) return;
      cursor = next;
    }
  }

  private shown(upstream: Upstream, { member, key }: (typeof LISTS)[string], item: Json): Json {
    const name = isJsonObject(item) ? item[key] : undefined;
    if (!isJsonObject(item) || typeof name !== "string") return item;
    // Only prompts have names; a resource's address is its own.
    const shown = member === "prompts" && upstream.spec.namespace ? `${upstream.name}.${name}` : name;
    this.owners.set(`${member} ${shown}`, upstream);
    return shown === name ? item : { ...item, name: shown };
  }

  private async single(request: PassRequest, feature: Feature): Promise<JsonObject> {
    const candidates = this.allowed(feature, request.method);
    const targets = this.targets(request, candidates);
    let refusal: unknown;
    for (const target of targets) {
      try {
        return await this.send(request, target);
      } catch (error) {
        // Another upstream may know what this one does not.
        if (failureOf(error).kind !== "answered") throw error;
        refusal ??= error;
      }
    }
    throw refusal ?? invalidParams(`${request.method}: no upstream has what it names`);
  }

  private targets({ method, params }: PassRequest, candidates: Upstream[]): Target[] {
    const { ref } = params;
    const named = method === "completion/complete" && isJsonObject(ref) ? ref : params;
    if (typeof named["uri"] === "string") {
      const owner = this.owners.get(`resources ${named["uri"]}`);
      const order = owner !== undefined && candidates.includes(owner) ? [owner] : candidates;
      return order.map((upstream) => ({ upstream, params }));
    }
    const { name } = named;
    if (typeof name !== "string") throw invalidParams(`${method}: name or uri is required`);
    const owner = this.owners.get(`prompts ${name}`);
    // Who shows it under this name comes first, then whose prefix it carries, then the rest.
    const rank = (upstream: Upstream) => (upstream === owner ? 0 : upstream.spec.namespace ? 1 : 2);
    const order = [...candidates].sort((a, b) => rank(a) - rank(b));
    return order.flatMap((upstream): Target[] => {
      const prefix = upstream.spec.namespace ? `${upstream.name}.` : "";
      if (!name.startsWith(prefix)) return [];
      const own = { ...named, name: name.slice(prefix.length) };
      return [{ upstream, params: named === params ? own : { ...params, ref: own } }];
    });
  }

  private async send(request: PassRequest, { upstream, params }: Target): Promise<JsonObject> {
    const { method, cancellation } = request;
    const own = await request.own(upstream);
    const meta = request.meta(upstream);
    const rounds = request.rounds(upstream);
    const sent: JsonObject = {
      ...parametersAlone(params),
      ...(rounds ? request.input : {}),
      ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
    };
    const options = { timeout_ms: upstream.spec.timeout_ms, cancellation, fulfil: own !== undefined };
    const answer = await upstream.request(method, sent, options, own);
    if (answer["resultType"] === "input_required" && !rounds) {
      throw invalidParams(`${method}: the upstream asks for input, which its passthrough does not allow`);
    }
    return answer;
  }
}

function parametersAlone(params: JsonObject): JsonObject {
  const { _meta, inputResponses, requestState, ...alone } = params;
  return alone;
}
