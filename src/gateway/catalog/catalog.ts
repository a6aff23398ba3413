/**
 * Tools of all upstreams under the names that agents see. Rejects names that would hide one of the service's own tools,
 * or that use another upstream's namespace.
 */
import { valueHash } from "../../kernel/hash.ts";
import { assertJson, type JsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";

export interface ToolRoute {
  /** Name for agents and manifests. */
  tool: string;
  upstream: UpstreamServer;
  /** Name at the upstream. */
  name: string;
  /** The upstream's definition with the shown name. */
  definition: JsonObject;
  /** Hash of the complete definition, which is compared with the pin. */
  hash: string;
}

/** All offers of the upstreams. If several offer one name, the pins decide which upstream gets it. */
export interface ToolCatalog {
  /** By shown name, in configuration order. */
  offers: ReadonlyMap<string, readonly ToolRoute[]>;
  /** Tools that must not be offered, with reasons. The gateway does not start with any of them. */
  problems: readonly string[];
  /** Omitted tools, with reasons. */
  strays: readonly string[];
  /** By name of each configured upstream, whether its tool list is known. */
  upstreams: ReadonlyMap<string, boolean>;
}

/** Prefixes of the service's own tools. A call may use either spelling, so upstream tools must use neither. */
export const OWN_PREFIXES = ["svc.", "svc_"] as const;
export const NO_CATALOG: ToolCatalog = { offers: new Map(), problems: [], strays: [], upstreams: new Map() };

export function buildCatalog(upstreams: readonly UpstreamServer[]): ToolCatalog {
  const offers = new Map<string, ToolRoute[]>();
  const problems: string[] = [];
  const strays: string[] = [];
  // A namespace reserves all names with its prefix, including those that its upstream does not offer yet.
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
  return {
    offers,
    problems,
    strays,
    upstreams: new Map(upstreams.map(({ name, isListed }) => [name, isListed])),
  };
}

/** The part before the first dot. Upstream names do not contain dots. */
function namespaceOf(tool: string): string {
  return tool.slice(0, Math.max(0, tool.indexOf(".")));
}

function readDefinition(upstream: UpstreamServer, definition: JsonObject): ToolRoute | string {
  const { name } = definition;
  const who = `upstream ${upstream.name}`;
  if (typeof name !== "string" || name === "") return `${who}: lists a tool without a name`;
  const tool = upstream.spec.namespace ? `${upstream.name}.${name}` : name;
  const shown = JSON.stringify(tool.slice(0, 80));
  if (tool.length > SERVICE_LIMITS.tool_chars)
    return `${who}: the name of tool ${shown} is longer than ${SERVICE_LIMITS.tool_chars} characters`;
  const taken = OWN_PREFIXES.find((prefix) => tool.startsWith(prefix));
  if (taken !== undefined) {
    const fix = upstream.spec.namespace
      ? "give this upstream another name"
      : "set namespace: true for this upstream";
    return `${who}: the name of tool ${shown} begins with "${taken}", which is reserved for the service's own tools; ${fix}`;
  }
  try {
    assertJson(definition, "definition");
  } catch {
    return `${who}: the definition of tool ${shown} contains values that cannot be stored exactly`;
  }
  const seen = tool === name ? definition : { ...definition, name: tool };
  return { tool, upstream, name, definition: seen, hash: valueHash(definition) };
}

function twice({ tool, upstream }: ToolRoute): string {
  return `upstream ${upstream.name}: lists tool ${JSON.stringify(tool)} twice`;
}

function stray({ tool, upstream }: ToolRoute, { name }: UpstreamServer): string {
  return `upstream ${upstream.name}: the name of tool ${JSON.stringify(tool)} begins with the namespace of upstream ${name}; set namespace: true for this upstream`;
}
