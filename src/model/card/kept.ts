/**
 * What of a call's values may be shown to whoever decides it. Personal data stay, because who gets the mail is what
 * is judged; credentials never do, wherever they stand; what the manifest redacts is masked unless its card reveals it.
 */
import type { Json, JsonObject } from "../../kernel/json.ts";
import { type Path, tryPath } from "../../kernel/paths.ts";
import { isPlaceholder, secretName } from "../detect/names.ts";
import { redactSecrets } from "../detect/secrets.ts";
import type { Manifest } from "../manifest/types.ts";
import { isPrefix, maskExcept, maskFilled, sizedMask, sizedMaskOf } from "../mask.ts";
import { textPlace } from "./place.ts";

type Declared = Pick<Manifest, "audit" | "card">;

export function keptArgs(args: Json, manifest: Declared | null): Json {
  const hidden = pathsInto("args", manifest?.audit.redaction ?? []);
  const shown = pathsInto("args", manifest?.card?.reveal ?? []);
  return withoutCredentials(
    maskExcept(
      args,
      hidden.map(({ keys }) => keys),
      shown.map(({ keys }) => keys),
      sizedMaskOf,
    ),
  );
}

/**
 * What was read before the call, by the same rules: what the reading tool's manifest masks in its results is masked, and
 * what stands in the place of a masked argument is masked like it.
 */
export function keptBefore(
  before: Json,
  manifest: (Declared & Pick<Manifest, "compensation">) | null,
  reader: Pick<Manifest, "audit"> | null,
): Json {
  const results = pathsInto("result", reader?.audit.redaction ?? []).map(({ keys }) => keys);
  const shown = pathsInto("args", manifest?.card?.reveal ?? []).map(({ keys }) => keys);
  const hidden = pathsInto("args", manifest?.audit.redaction ?? [])
    .map(({ keys }) => keys)
    .filter((keys) => !shown.some((wide) => isPrefix(wide, keys)));
  const places = hidden.flatMap((keys) => {
    const place = textPlace(before, manifest, keys);
    return place === undefined ? [] : [place];
  });
  return withoutCredentials(maskExcept(before, [...results, ...places], [], sizedMaskOf));
}

/** The arguments of an undo: what its call's manifest redacts is masked wherever the undo took it over. */
export function keptUndoArgs(args: Json, call: Manifest | null, undo: Declared | null): Json {
  const template = call?.compensation?.args;
  const hidden = (call?.audit.redaction ?? []).flatMap((source) => tryPath(source) ?? []);
  return keptArgs(template === undefined ? args : maskFilled(template, args, hidden), undo);
}

function pathsInto(root: Path["root"], sources: readonly string[]): Path[] {
  return sources.flatMap((source) => tryPath(source) ?? []).filter((path) => path.root === root);
}

/** Paths whose names hold no credential. */
export const keptPaths = (paths: readonly string[]): string[] => paths.map((path) => redactSecrets(path));

export function withoutCredentials(value: Json, key?: string): Json {
  if (typeof value === "string" || typeof value === "number") return withoutCredential(value, key);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => withoutCredentials(item, key));
  const out: JsonObject = {};
  for (const name of Object.keys(value)) {
    const safe = redactSecrets(name);
    let free = safe;
    // Several names may become the same one; every entry is kept.
    for (let n = 2; Object.hasOwn(out, free); n++) free = `${safe}#${n}`;
    out[free] = withoutCredentials(value[name]!, nameWithin(name, key));
  }
  return out;
}

/** `{password: {value: ..}}` names what `password_value` names. */
function nameWithin(name: string, outer: string | undefined): string {
  return outer === undefined || secretName(name) !== undefined ? name : `${outer}_${name}`.slice(-128);
}

const sizedSecret = (kind: string, length: number): string => sizedMask(length, kind);

/** A person is shown less than a check may block: what is called a password is one, however short or plain it is. */
function withoutCredential(value: string | number, key: string | undefined): Json {
  const name = key === undefined ? undefined : secretName(key);
  const plain = String(value);
  if (name !== undefined && plain !== "" && !isPlaceholder(plain)) {
    if (name.kind === "password" || (/^\d{4,}$/.test(plain) && (name.strong || /pin$/i.test(key!))))
      return sizedMask(plain.length, name.kind);
  }
  return typeof value === "number" ? value : redactSecrets(value, key, sizedSecret);
}
