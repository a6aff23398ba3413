/**
 * The tools of all upstreams under the names that agents see. Names that would hide one of the service's own
 * tools, or stand in another upstream's namespace, are refused.
 */
import { valueHash } from "../kernel/hash.ts";
import { assertJson, type JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Upstream } from "./upstream/upstream.ts";

export interface Route {
  /** The name as agents and manifests have it. */
  tool: string;
  upstream: Upstream;
  /** The name as the upstream has it. */
  name: string;
  /** As the upstream gave it, but for the shown name. */
  definition: JsonObject;
  /** Over the whole definition; a pin is compared with it. */
  hash: string;
}

/** What the upstreams offer; whose a name is that several offer, the pins say. */
export interface Catalog {
  /** By the shown name, in the order of the configuration. */
  offers: ReadonlyMap<string, readonly Route[]>;
  /** Tools that must not be offered, and why; with one of them the gateway does not start. */
  problems: readonly string[];
  /** Tools that are left out, and why. */
  strays: readonly string[];
  /** By name, whether its tools are known to be these; upstreams that are not configured are not there. */
  upstreams: ReadonlyMap<string, boolean>;
}

/** How our own tools' names begin, in both spellings: both are accepted in a call, so no upstream may have either. */
export const OWN_PREFIXES = ["svc.", "svc_"] as const;
export const NO_CATALOG: Catalog = { offers: new Map(), problems: [], strays: [], upstreams: new Map() };

export function buildCatalog(upstreams: readonly Upstream[]): Catalog {
  const offers = new Map<string, Route[]>();
  const problems: string[] = [];
  const strays: string[] = [];
  // The names that begin with a namespace are its upstream's, those too that it does not offer yet.
  const namespaces = new Map(upstreams.filter(({ spec }) => spec.namespace).map((one) => [one.name, one]));
  for (const upstream of upstreams) {
    for (const definition of upstream.tools) {
      const read = readDefinition(upstream, definition);
      if (typeof read === "string") {
        problems.push(read);
        continue;
      }
      const others = offers.get(read.tool) ?? [];
      const owner = namespaces.get(namespaceOf(read.tool));
      if (owner !== undefined && owner !== upstream) strays.push(stray(read, owner));
      else if (others.some((other) => other.upstream === upstream)) problems.push(twice(read));
      else offers.set(read.tool, [...others, read]);
    }
  }
  return { offers, problems, strays, upstreams: new Map(upstreams.map(({ name, ok }) => [name, ok])) };
}

/** The part before the first dot, which no upstream's name holds. */
function namespaceOf(tool: string): string {
  return tool.slice(0, Math.max(0, tool.indexOf(".")));
}

function readDefinition(upstream: Upstream, definition: JsonObject): Route | string {
  const { name } = definition;
  const who = `upstream ${upstream.name}`;
  if (typeof name !== "string" || name === "") return `${who}: lists a tool without a name`;
  const tool = upstream.spec.namespace ? `${upstream.name}.${name}` : name;
  const shown = JSON.stringify(tool.slice(0, 80));
  if (tool.length > LIMITS.tool_chars)
    return `${who}: the name of tool ${shown} is longer than ${LIMITS.tool_chars} characters`;
  const taken = OWN_PREFIXES.find((prefix) => tool.startsWith(prefix));
  if (taken !== undefined) {
    const fix = upstream.spec.namespace
      ? "give this upstream another name"
      : "set namespace: true for this upstream";
    return `${who}: the name of tool ${shown} begins with "${taken}", which is kept for the service's own tools; ${fix}`;
  }
  try {
    assertJson(definition, "definition");
  } catch {
    return `${who}: the definition of tool ${shown} holds values that cannot be kept exactly`;
  }
  const seen = tool === name ? definition : { ...definition, name: tool };
  return { tool, upstream, name, definition: seen, hash: valueHash(definition) };
}

function twice({ tool, upstream }: Route): string {
  return `upstream ${upstream.name}: lists tool ${JSON.stringify(tool)} twice`;
}

function stray({ tool, upstream }: Route, { name }: Upstream): string {
  return `upstream ${upstream.name}: the name of tool ${JSON.stringify(tool)} begins with the namespace of upstream ${name}; set namespace: true for this upstream`;
}
