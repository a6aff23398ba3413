/**
 * Names on a card. A label is written by the author of the manifest; an argument's name is chosen by the agent. A name
 * that the manifest does not declare is quoted, so that it cannot pass for a label.
 */
import { visibleWholeLine } from "../../kernel/visible.ts";

const PLAIN_NAME = /^[^.[\]"$\s]+$/;
const NOT_ASCII = /[^\x20-\x7e]/u;

/** A path below `$args`, as manifests write it. */
export function argumentPath(keys: readonly (string | number)[], root = "$args"): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    return PLAIN_NAME.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
  }, root);
}

export function argumentLabel(name: string, declared: boolean): string {
  return declared ? visibleWholeLine(name) : quotedName(name);
}

/** The name in quotes. One with characters outside ASCII is also spelled by their numbers, since letters look alike. */
export function quotedName(name: string): string {
  const shown = `"${visibleWholeLine(name).replaceAll('"', '\\"')}"`;
  if (!NOT_ASCII.test(name)) return shown;
  const spelled = Array.from(name, (c) => (NOT_ASCII.test(c) ? `\\u{${c.codePointAt(0)!.toString(16)}}` : c));
  return `${shown} (spelled ${spelled.join("")})`;
}

/** Equal for names that a reader can take for one another: by case, separators, width, accents or unseen characters. */
export function nameSkeleton(name: string): string {
  return name
    .normalize("NFKD")
    .replace(/[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\p{M}\s_.-]/gu, "")
    .toLowerCase();
}
