/**
 * The names that clients see. Model providers take letters, digits, `_` and `-` in a tool's name, and several
 * clients hand names on as they are; manifests, policies and records keep the dotted name whatever is listed.
 */
import { sha256Hex } from "../kernel/hash.ts";

/** What every model provider takes. */
const LONGEST = 64;
const KEPT = 55;
const DIGITS = 8;

/** The name in the allowed characters; `namespace` is the upstream's name where the tool carries it. */
export function plainly(dotted: string, namespace: string | null): string {
  const spell = (text: string) => text.replace(/[^A-Za-z0-9_-]/gu, "_");
  if (namespace === null) return spell(dotted);
  return `${namespace}__${spell(dotted.slice(namespace.length + 1))}`;
}

export interface Named {
  /** The name of manifests, policies and records. */
  tool: string;
  namespace: string | null;
}

export interface Names {
  /** By dotted name, the one in the allowed characters. */
  readonly plain: ReadonlyMap<string, string>;
  /** By that one, the dotted name. */
  readonly dotted: ReadonlyMap<string, string>;
}

/**
 * Gives each tool a name of its own, whatever order they come in: a name that is good as it is stays; made ones
 * that meet it, or one another, get the first digits of a hash of what they stand for. `taken` are names that no
 * tool may get.
 */
export function nameAll(tools: readonly Named[], taken: Iterable<string> = []): Names {
  const kept = new Set(taken);
  const made: { tool: string; name: string }[] = [];
  const plain = new Map<string, string>();
  for (const { tool, namespace } of tools) {
    const name = plainly(tool, namespace);
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

/** The first digits of the hash; further ones where an upstream took care to have that very name. */
function withDigits(tool: string, name: string, taken: ReadonlySet<string>): string {
  const hash = sha256Hex(tool);
  for (let at = 0; ; at++) {
    const digits =
      at + DIGITS <= hash.length ? hash.slice(at, at + DIGITS) : sha256Hex(`${at} ${tool}`).slice(0, DIGITS);
    const candidate = `${name.slice(0, KEPT)}_${digits}`;
    if (!taken.has(candidate)) return candidate;
  }
}
