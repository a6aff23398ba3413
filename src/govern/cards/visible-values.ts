/**
 * Decides which values of a call an approver can see. Personal data stays visible, because the recipient of an email is
 * part of the decision. Credentials are always removed. The manifest's redacted paths are masked unless its card
 * reveals them.
 */
import type { JsonValue } from "../../kernel/json/json.ts";
import { type JsonOrText, JsonTextValue } from "../../kernel/json/json-text-value.ts";
import { cachedResult, cacheResult } from "../../kernel/json/large-value-cache.ts";
import { tryPath, type ValuePath } from "../../kernel/paths.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { changingJson } from "../../rules/detect/json.ts";
import { isPlaceholder, secretName } from "../../rules/detect/names.ts";
import { redactSecrets } from "../../rules/detect/secrets.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import {
  credentialMask,
  isPrefix,
  maskExcept,
  maskFilled,
  sizedMask,
  sizedMaskOf,
} from "../../rules/redact/mask.ts";
import { locateText } from "./text/locate.ts";

type Declared = Pick<ToolManifest, "audit" | "card">;

/** The visible arguments for a new request: as text if they are large and a thread has computed it. */
export function visibleArgs(args: JsonValue, manifest: Declared | null): JsonOrText {
  return (
    cachedResult<JsonTextValue>(args, aboutKept(manifest)) ?? runAtOnce(computingVisibleArgs(args, manifest))
  );
}

const NO_MANIFEST = {};
/** Cache key: the visible values depend on the manifest alone. */
const aboutKept = (manifest: Declared | null): object => manifest ?? NO_MANIFEST;

/** Caches the text of the visible arguments, which another thread computed, for `visibleArgs`. */
export function cacheVisibleArgs(args: JsonValue, manifest: Declared | null, text: string): void {
  cacheResult(args, aboutKept(manifest), new JsonTextValue(text));
}

export function computingVisibleArgs(args: JsonValue, manifest: Declared | null): PausableWork<JsonValue> {
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
 * Computes the visible form of a `before` read. The manifest of the reading tool masks its result, and the value that
 * corresponds to a masked argument is masked too.
 */
export function* computingVisibleBefore(
  before: JsonValue,
  manifest: (Declared & Pick<ToolManifest, "compensation">) | null,
  reader: Pick<ToolManifest, "audit"> | null,
): PausableWork<JsonValue> {
  const results = pathsInto("result", reader?.audit.redaction ?? []).map(({ keys }) => keys);
  const shown = pathsInto("args", manifest?.card?.reveal ?? []).map(({ keys }) => keys);
  const hidden = pathsInto("args", manifest?.audit.redaction ?? [])
    .map(({ keys }) => keys)
    .filter((keys) => !shown.some((wide) => isPrefix(wide, keys)));
  const places = hidden.flatMap((keys) => {
    const place = locateText(before, manifest, keys);
    return place === undefined ? [] : [place];
  });
  return yield* takingCredentials(maskExcept(before, [...results, ...places], [], sizedMaskOf));
}

export function visibleBefore(...given: Parameters<typeof computingVisibleBefore>): JsonOrText {
  const [before, manifest, reader] = given;
  return (
    cachedResult<JsonTextValue>(before, aboutRead(manifest, reader)) ??
    runAtOnce(computingVisibleBefore(...given))
  );
}

/** Caches the text of the visible read, which another thread computed, for `visibleBefore`. */
export function cacheVisibleBefore(
  before: JsonValue,
  manifest: object | null,
  reader: object | null,
  text: string,
): void {
  cacheResult(before, aboutRead(manifest, reader), new JsonTextValue(text));
}

const reads = new WeakMap<object, WeakMap<object, object>>();

/** Cache key: the visible form of a read depends on the manifests of the call and of the reading tool. */
function aboutRead(manifest: object | null, reader: object | null): object {
  const byReader = reads.get(manifest ?? NO_MANIFEST) ?? new WeakMap<object, object>();
  reads.set(manifest ?? NO_MANIFEST, byReader);
  const about = byReader.get(reader ?? NO_MANIFEST) ?? {};
  byReader.set(reader ?? NO_MANIFEST, about);
  return about;
}

/** Visible arguments of an undo. Values that the undo copies from redacted paths of its call are masked. */
export function visibleUndoArgs(
  args: JsonValue,
  call: ToolManifest | null,
  undo: Declared | null,
): JsonOrText {
  const template = call?.compensation?.args;
  const hidden = (call?.audit.redaction ?? []).flatMap((source) => tryPath(source) ?? []);
  return visibleArgs(template === undefined ? args : maskFilled(template, args, hidden), undo);
}

function pathsInto(root: ValuePath["root"], sources: readonly string[]): ValuePath[] {
  return sources.flatMap((source) => tryPath(source) ?? []).filter((path) => path.root === root);
}

/** Removes credentials from the names in paths. */
export const visiblePaths = (paths: readonly string[]): string[] => paths.map((path) => redactSecrets(path));

export function withoutCredentials(value: JsonValue): JsonValue {
  return runAtOnce(takingCredentials(value));
}

/** Paced version of `withoutCredentials`. */
function takingCredentials(value: JsonValue): PausableWork<JsonValue> {
  return changingJson(value, {
    leaf: withoutCredential,
    name: (name) => redactSecrets(name),
    within: nameWithin,
  });
}

/** Joins names, so that `{password: {value: ..}}` is treated like `password_value`. */
function nameWithin(name: string, outer: string | undefined): string {
  return outer === undefined || secretName(name) !== undefined ? name : `${outer}_${name}`.slice(-128);
}

/**
 * Removes a credential. Stricter than the content checks: any value named like a password counts, however short or
 * plain.
 */
function withoutCredential(value: string | number, key: string | undefined): JsonValue {
  const name = key === undefined ? undefined : secretName(key);
  const plain = String(value);
  if (name !== undefined && plain !== "" && !isPlaceholder(plain)) {
    if (name.kind === "password" || (/^\d{4,}$/.test(plain) && (name.strong || /pin$/i.test(key!))))
      return sizedMask(plain.length, name.kind);
  }
  return typeof value === "number" ? value : redactSecrets(value, key, credentialMask);
}
