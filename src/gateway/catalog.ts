/**
 * The tools of all upstreams under the names that agents see. A name means one tool of one upstream: what
 * would hide another tool, or one of the service's own, is refused.
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
  /** Over the whole definition; what a pin is compared with. */
  hash: string;
}

export interface CatalogView {
  routes: ReadonlyMap<string, Route>;
  /** Tools that are not offered, and why. */
  problems: readonly string[];
}

export const OWN_PREFIX = "svc.";

export function buildCatalog(upstreams: readonly Upstream[]): CatalogView {
  const routes = new Map<string, Route>();
  const problems: string[] = [];
  for (const upstream of upstreams) {
    for (const definition of upstream.tools) {
      const read = readDefinition(upstream, definition);
      if (typeof read === "string") {
        problems.push(read);
        continue;
      }
      const other = routes.get(read.tool);
      if (other === undefined) routes.set(read.tool, read);
      else problems.push(duplicate(read, other));
    }
  }
  return { routes, problems };
}

function readDefinition(upstream: Upstream, definition: JsonObject): Route | string {
  const { name } = definition;
  const who = `upstream ${upstream.name}`;
  if (typeof name !== "string" || name === "") return `${who}: lists a tool without a name`;
  const tool = upstream.spec.namespace ? `${upstream.name}.${name}` : name;
  const shown = JSON.stringify(tool.slice(0, 80));
  if (tool.length > LIMITS.tool_chars)
    return `${who}: the name of tool ${shown} is longer than ${LIMITS.tool_chars} characters`;
  if (tool.startsWith(OWN_PREFIX)) {
    return `${who}: the name of tool ${shown} begins with "${OWN_PREFIX}", which is kept for the service's own tools; set namespace: true for this upstream`;
  }
  try {
    assertJson(definition, "definition");
  } catch {
    return `${who}: the definition of tool ${shown} holds values that cannot be kept exactly`;
  }
  const seen = tool === name ? definition : { ...definition, name: tool };
  return { tool, upstream, name, definition: seen, hash: valueHash(definition) };
}

function duplicate(one: Route, other: Route): string {
  const tool = JSON.stringify(one.tool);
  if (one.upstream === other.upstream) return `upstream ${one.upstream.name}: lists tool ${tool} twice`;
  return `upstreams ${other.upstream.name} and ${one.upstream.name} both offer tool ${tool}; set namespace: true for one of them`;
}
