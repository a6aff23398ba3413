/**
 * Tool names for clients. Model providers accept letters, digits, `_` and `-` in a tool name, and several clients pass
 * names on unchanged. Manifests, policies and records always use the dotted name.
 */
import { sha256Hex } from "../../kernel/hash.ts";

/** Length limit that every model provider accepts. */
const LONGEST = 64;
const KEPT = 55;
const DIGITS = 8;

/** Converts a dotted name to the allowed characters. `namespace` is the upstream's name if it prefixes the tool. */
export function toProviderName(dotted: string, namespace: string | null): string {
  const spell = (text: string) => text.replace(/[^A-Za-z0-9_-]/gu, "_");
  if (namespace === null) return spell(dotted);
  return `${namespace}__${spell(dotted.slice(namespace.length + 1))}`;
}

export interface NamespacedTool {
  /** The name in manifests, policies and records. */
  tool: string;
  namespace: string | null;
}

export interface ToolNames {
  /** Provider-safe names by dotted name. */
  readonly plain: ReadonlyMap<string, string>;
  /** Dotted names by provider-safe name. */
  readonly dotted: ReadonlyMap<string, string>;
}

/**
 * Gives each tool a unique name, independent of their order. A valid name stays as it is. A converted name that clashes
 * gets the first digits of a hash of the dotted name. No tool gets a name in `taken`.
 */
export function assignNames(tools: readonly NamespacedTool[], taken: Iterable<string> = []): ToolNames {
  const kept = new Set(taken);
  const made: { tool: string; name: string }[] = [];
  const plain = new Map<string, string>();
  for (const { tool, namespace } of tools) {
    const name = toProviderName(tool, namespace);
    if (name === tool && name.length <= LONGEST && !kept.has(name)) plain.set(tool, name);
    else made.push({ tool, name });
  }
  for (const name of plain.values()) kept.add(name);
  const times = new Map<string, number>();
  for (const { name } of made) times.set(name, (times.get(name) ?? 0) + 1);
  const free = ({ name }: { name: string }) =>
    name.length <= LONGEST && !kept.has(name) && times.get(name) === 1;
  const hashed = made.filter((one) => !free(one));
  for (const { tool, name } of made.filter(free)) {
    plain.set(tool, name);
    kept.add(name);
  }
  for (const { tool, name } of hashed) {
    const unique = withDigits(tool, name, kept);
    plain.set(tool, unique);
    kept.add(unique);
  }
  return { plain, dotted: new Map([...plain].map(([tool, name]) => [name, tool])) };
}

/** Appends the first digits of the hash, or later digits if an upstream deliberately uses that name. */
function withDigits(tool: string, name: string, taken: ReadonlySet<string>): string {
  const hash = sha256Hex(tool);
  for (let at = 0; ; at++) {
    const digits =
      at + DIGITS <= hash.length ? hash.slice(at, at + DIGITS) : sha256Hex(`${at} ${tool}`).slice(0, DIGITS);
    const candidate = `${name.slice(0, KEPT)}_${digits}`;
    if (!taken.has(candidate)) return candidate;
  }
}
