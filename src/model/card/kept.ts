/**
 * What of a call's values may be shown to whoever decides it. Personal data stay, because who gets the mail is what
 * is judged; credentials never do, wherever they stand; what the manifest redacts is masked unless its card reveals it.
 */
import type { Json } from "../../kernel/json.ts";
import { knownAbout, learningAbout } from "../../kernel/large-values.ts";
import { type Path, tryPath } from "../../kernel/paths.ts";
import { doAtOnce, type Paced } from "../../kernel/turns.ts";
import { changingJson } from "../detect/json.ts";
import { isPlaceholder, secretName } from "../detect/names.ts";
import { redactSecrets } from "../detect/secrets.ts";
import type { Manifest } from "../manifest/types.ts";
import { isPrefix, maskExcept, maskFilled, sizedMask, sizedMaskOf } from "../mask.ts";
import { textPlace } from "./place.ts";

type Declared = Pick<Manifest, "audit" | "card">;

export function keptArgs(args: Json, manifest: Declared | null): Json {
  return knownAbout<Json>(args, aboutKept(manifest)) ?? doAtOnce(keepingArgs(args, manifest));
}

const NO_MANIFEST = {};
/** What is kept of a value depends on the manifest alone. */
const aboutKept = (manifest: Declared | null): object => manifest ?? NO_MANIFEST;

/** Works out what is kept of large arguments, in turns; `keptArgs` then has it. */
export function learningKeptArgs(args: Json, manifest: Declared | null): Paced<void> {
  return learningAbout(args, aboutKept(manifest), () => keepingArgs(args, manifest));
}

export function keepingArgs(args: Json, manifest: Declared | null): Paced<Json> {
  const hidden = pathsInto("args", manifest?.audit.redaction ?? []);
  const shown = pathsInto("args", manifest?.card?.reveal ?? []);
  return takingCredentials(
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
export function* keepingBefore(
  before: Json,
  manifest: (Declared & Pick<Manifest, "compensation">) | null,
  reader: Pick<Manifest, "audit"> | null,
): Paced<Json> {
  const results = pathsInto("result", reader?.audit.redaction ?? []).map(({ keys }) => keys);
  const shown = pathsInto("args", manifest?.card?.reveal ?? []).map(({ keys }) => keys);
  const hidden = pathsInto("args", manifest?.audit.redaction ?? [])
    .map(({ keys }) => keys)
    .filter((keys) => !shown.some((wide) => isPrefix(wide, keys)));
  const places = hidden.flatMap((keys) => {
    const place = textPlace(before, manifest, keys);
    return place === undefined ? [] : [place];
  });
  return yield* takingCredentials(maskExcept(before, [...results, ...places], [], sizedMaskOf));
}

export function keptBefore(...given: Parameters<typeof keepingBefore>): Json {
  const [before, manifest, reader] = given;
  return knownAbout<Json>(before, aboutRead(manifest, reader)) ?? doAtOnce(keepingBefore(...given));
}

/** Works out what is kept of a large read, in turns; `keptBefore` then has it. */
export function learningKeptBefore(...given: Parameters<typeof keepingBefore>): Paced<void> {
  const [before, manifest, reader] = given;
  return learningAbout(before, aboutRead(manifest, reader), () => keepingBefore(...given));
}

const reads = new WeakMap<object, WeakMap<object, object>>();

/** What is kept of a read depends on two manifests: the call's, and that of the tool that reads. */
function aboutRead(manifest: object | null, reader: object | null): object {
  const byReader = reads.get(manifest ?? NO_MANIFEST) ?? new WeakMap<object, object>();
  reads.set(manifest ?? NO_MANIFEST, byReader);
  const about = byReader.get(reader ?? NO_MANIFEST) ?? {};
  byReader.set(reader ?? NO_MANIFEST, about);
  return about;
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

export function withoutCredentials(value: Json): Json {
  return doAtOnce(takingCredentials(value));
}

/** The same in turns. */
function takingCredentials(value: Json): Paced<Json> {
  return changingJson(value, {
    leaf: withoutCredential,
    name: (name) => redactSecrets(name),
    within: nameWithin,
  });
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
