/**
 * Forwards MCP methods other than tools. Nothing governs them, so an upstream's resources, prompts and completions are
 * available only if its configuration names them. Their parameters then pass unchanged. Members next to the parameters
 * (`_meta`, answers to questions that the upstream must not ask) are not forwarded.
 */
import type { PASSTHROUGH_FEATURES } from "../../config/sections/gateway.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { invalidParams, methodNotFound } from "../session/mcp-server.ts";
import type { ConnectionOwner } from "../upstream/connection-pool.ts";
import { failureOf } from "../upstream/failure.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import type { CallCancellation } from "./cancellation.ts";

type Feature = (typeof PASSTHROUGH_FEATURES)[number];

/** Routing by method: lists are merged, and other requests go to the upstream that owns the named item. */
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
const METHOD_NOT_FOUND = -32_601;

/** Whether the upstream declares the feature. */
function has({ current }: UpstreamServer, feature: Feature): boolean {
  return current === null || current.capabilities[feature as keyof typeof current.capabilities] !== undefined;
}

interface PassRequest {
  method: string;
  params: JsonObject;
  /** The client's answers to the questions of an upstream. */
  input: JsonObject | undefined;
  cancellation: CallCancellation;
  /** Owner of the connection to an upstream. Undefined if all callers share one. */
  holder(upstream: UpstreamServer): ConnectionOwner | undefined;
  /** The client's `_meta` for an upstream of the newer protocol version. */
  meta(upstream: UpstreamServer): JsonObject;
  /** Whether an answer may ask the client for input. */
  rounds(upstream: UpstreamServer): boolean;
}

/** An item of a merged list. Its key is null if the item has no name. */
interface Shown {
  key: string | null;
  upstream: UpstreamServer;
  item: JsonValue;
}

interface Target {
  upstream: UpstreamServer;
  params: JsonObject;
}

export class MethodPassthrough {
  private readonly upstreams: readonly UpstreamServer[];
  /** The upstream that first listed a prompt or resource, by `<member> <name>`. */
  private readonly owners = new Map<string, UpstreamServer>();

  constructor(upstreams: readonly UpstreamServer[]) {
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

  private allowed(feature: Feature, method: string): UpstreamServer[] {
    const found = this.upstreams.filter(({ spec }) => spec.passthrough.includes(feature));
    if (found.length === 0)
      throw methodNotFound(method, `: no upstream has ${feature} in its passthrough list`);
    return found;
  }

  private async list(request: PassRequest, list: (typeof LISTS)[string]): Promise<JsonObject> {
    const shown: Shown[] = [];
    let meta: JsonValue | undefined;
    for (const upstream of this.allowed(list.feature, request.method)) {
      if (!upstream.ok || !has(upstream, list.feature)) continue;
      for await (const page of this.pagesOrNone(request, upstream)) {
        meta ??= page["_meta"];
        const found = page[list.member];
        for (const item of Array.isArray(found) ? found : []) shown.push(asShown(upstream, list, item));
      }
    }
    this.settleOwners(shown);
    const items = shown.filter(({ key, upstream }) => key === null || this.owners.get(key) === upstream);
    return { [list.member]: items.map(({ item }) => item), ...(meta === undefined ? {} : { _meta: meta }) };
  }

  /**
   * Assigns each name to the upstream that listed it first, for as long as that upstream lists it or is unavailable.
   */
  private settleOwners(shown: readonly Shown[]): void {
    const claims = new Map<string, UpstreamServer[]>();
    for (const { key, upstream } of shown)
      if (key !== null) claims.set(key, [...(claims.get(key) ?? []), upstream]);
    for (const [key, upstreams] of claims) {
      const owner = this.owners.get(key);
      if (owner === undefined || (owner.ok && !upstreams.includes(owner)))
        this.owners.set(key, upstreams[0]!);
    }
  }

  /** Pages of a list. Empty if the upstream declares the feature but does not implement this list. */
  private async *pagesOrNone(request: PassRequest, upstream: UpstreamServer): AsyncGenerator<JsonObject> {
    try {
      yield* this.pages(request, upstream);
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind !== "answered" || failure.code !== METHOD_NOT_FOUND) throw error;
    }
  }

  private async *pages(request: PassRequest, upstream: UpstreamServer): AsyncGenerator<JsonObject> {
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

  private async single(request: PassRequest, feature: Feature): Promise<JsonObject> {
    const candidates = this.allowed(feature, request.method);
    const targets = this.targets(request, candidates);
    let refusal: unknown;
    for (const target of targets) {
      try {
        return await this.send(request, target);
      } catch (error) {
        // Another upstream may know the item.
        if (failureOf(error).kind !== "answered") throw error;
        refusal ??= error;
      }
    }
    throw refusal ?? invalidParams(`${request.method}: no upstream has the named item`);
  }

  /** Upstreams to try in order. An item with an owner goes only to that owner. */
  private targets({ method, params }: PassRequest, candidates: UpstreamServer[]): Target[] {
    const { ref } = params;
    const named = method === "completion/complete" && isJsonObject(ref) ? ref : params;
    if (typeof named["uri"] === "string") {
      const owner = this.owners.get(`resources ${named["uri"]}`);
      return candidates
        .filter((upstream) => owner === undefined || upstream === owner)
        .map((upstream) => ({ upstream, params }));
    }
    const { name } = named;
    if (typeof name !== "string") throw invalidParams(`${method}: name or uri is required`);
    const owner = this.owners.get(`prompts ${name}`);
    // Upstreams whose prefix matches the name come before those without a prefix.
    const order = [...candidates].sort((a, b) => Number(b.spec.namespace) - Number(a.spec.namespace));
    return order.flatMap((upstream): Target[] => {
      const prefix = upstream.spec.namespace ? `${upstream.name}.` : "";
      if (!name.startsWith(prefix) || (owner !== undefined && upstream !== owner)) return [];
      const own = { ...named, name: name.slice(prefix.length) };
      return [{ upstream, params: named === params ? own : { ...params, ref: own } }];
    });
  }

  private async send(request: PassRequest, { upstream, params }: Target): Promise<JsonObject> {
    const { method, cancellation } = request;
    const holder = request.holder(upstream);
    const meta = request.meta(upstream);
    const rounds = request.rounds(upstream);
    const sent: JsonObject = {
      ...parametersAlone(params),
      ...(rounds ? request.input : {}),
      ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
    };
    const options = {
      timeout_ms: upstream.spec.timeout_ms,
      cancellation,
      fulfil: holder?.capabilities !== undefined,
    };
    const answer = await upstream.request(method, sent, options, holder);
    if (answer["resultType"] === "input_required" && !rounds) {
      throw invalidParams(`${method}: the upstream asks for input, which its passthrough does not allow`);
    }
    return answer;
  }
}

function asShown(upstream: UpstreamServer, { member, key }: (typeof LISTS)[string], item: JsonValue): Shown {
  const name = isJsonObject(item) ? item[key] : undefined;
  if (!isJsonObject(item) || typeof name !== "string") return { key: null, upstream, item };
  // Only prompts are renamed. A resource keeps its URI.
  const shown = member === "prompts" && upstream.spec.namespace ? `${upstream.name}.${name}` : name;
  return { key: `${member} ${shown}`, upstream, item: shown === name ? item : { ...item, name: shown } };
}

function parametersAlone(params: JsonObject): JsonObject {
  const { _meta, inputResponses, requestState, ...alone } = params;
  return alone;
}
