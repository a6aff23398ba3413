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
import type { Holder } from "./upstream/pool.ts";
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
const METHOD_NOT_FOUND = -32_601;

/** Whether the upstream says that it has the feature at all. */
function has({ current }: Upstream, feature: Feature): boolean {
  return current === null || current.capabilities[feature as keyof typeof current.capabilities] !== undefined;
}

interface PassRequest {
  method: string;
  params: JsonObject;
  /** What the client answers to an upstream that may ask it. */
  input: JsonObject | undefined;
  cancellation: Cancellation;
  /** Whose connection to an upstream it goes over; undefined where all share one. */
  holder(upstream: Upstream): Holder | undefined;
  /** What an upstream of the newer era has to be told of the client. */
  meta(upstream: Upstream): JsonObject;
  /** Whether an answer may ask the client for input. */
  rounds(upstream: Upstream): boolean;
}

/** An item of a joined list; its key is null where it has no name to go by. */
interface Shown {
  key: string | null;
  upstream: Upstream;
  item: Json;
}

interface Target {
  upstream: Upstream;
  params: JsonObject;
}

export class Passthrough {
  private readonly upstreams: readonly Upstream[];
  /** Which upstream showed a prompt or resource first, by `<member> <name>`. */
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
    const shown: Shown[] = [];
    let meta: Json | undefined;
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

  /** Whoever showed a name first keeps it, for as long as it shows it or cannot be asked. */
  private settleOwners(shown: readonly Shown[]): void {
    const claims = new Map<string, Upstream[]>();
    for (const { key, upstream } of shown)
      if (key !== null) claims.set(key, [...(claims.get(key) ?? []), upstream]);
    for (const [key, upstreams] of claims) {
      const owner = this.owners.get(key);
      if (owner === undefined || (owner.ok && !upstreams.includes(owner)))
        this.owners.set(key, upstreams[0]!);
    }
  }

  /** An upstream that declares a feature and lacks one of its lists is left out of that list. */
  private async *pagesOrNone(request: PassRequest, upstream: Upstream): AsyncGenerator<JsonObject> {
    try {
      yield* this.pages(request, upstream);
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind !== "answered" || failure.code !== METHOD_NOT_FOUND) throw error;
    }
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

  /** What has an owner goes to the owner alone; anything else to each in turn until one knows it. */
  private targets({ method, params }: PassRequest, candidates: Upstream[]): Target[] {
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
    // Whose prefix it carries comes before those without one.
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

function asShown(upstream: Upstream, { member, key }: (typeof LISTS)[string], item: Json): Shown {
  const name = isJsonObject(item) ? item[key] : undefined;
  if (!isJsonObject(item) || typeof name !== "string") return { key: null, upstream, item };
  // Only prompts have names; a resource's address is its own.
  const shown = member === "prompts" && upstream.spec.namespace ? `${upstream.name}.${name}` : name;
  return { key: `${member} ${shown}`, upstream, item: shown === name ? item : { ...item, name: shown } };
}

function parametersAlone(params: JsonObject): JsonObject {
  const { _meta, inputResponses, requestState, ...alone } = params;
  return alone;
}
