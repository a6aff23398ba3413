/** Runs a finder over JSON, values and keys, since a field's name can be a secret too. */
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { memberNames } from "../../kernel/json/known-large.ts";
import { type PausableWork, runAtOnce, textUnits, UNITS_PER_PAUSE } from "../../kernel/pausable-work.ts";
import type { DetectorHit, HitFinder } from "./hits.ts";
import { redactPii } from "./pii.ts";
import { findSecrets, redactSecrets } from "./secrets.ts";
import { UniqueNames } from "./unique-names.ts";

export interface JsonHit {
  readonly kind: string;
  /** Path such as `$args.headers.authorization`, without names that could themselves be secret values. */
  readonly path: string;
  readonly start: number;
  readonly end: number;
  /** True if the hit is in the field's name. */
  readonly in_key: boolean;
}

/** Smallest number that can be a card or phone number. */
const TELLING_NUMBER = 1e6;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Position of the walk in a list or an object. The walk visits one member at a time, so that it can pause anywhere. */
interface Level {
  readonly of: JsonValue[] | JsonObject;
  /** Field names of an object; null for a list. */
  readonly names: readonly string[] | null;
  readonly length: number;
  at: number;
  /** Name of the field that contains it. */
  readonly key: string | undefined;
}

function levelOf(of: JsonValue[] | JsonObject, key: string | undefined): Level {
  const names = Array.isArray(of) ? null : memberNames(of);
  return { of, names, length: names?.length ?? (of as JsonValue[]).length, at: -1, key };
}

const memberOf = ({ of, names, at }: Level): JsonValue =>
  names === null ? (of as JsonValue[])[at]! : (of as JsonObject)[names[at]!]!;

/** Lists the hits in a value, in document order. `most` limits the result, not the work. */
export function scanJson(value: JsonValue, finder: HitFinder, root = "$args", most = 1_000): JsonHit[] {
  return runAtOnce(scanningJson(value, finder, root, most));
}

export function* scanningJson(
  value: JsonValue,
  finder: HitFinder,
  root = "$args",
  most = 1_000,
): PausableWork<JsonHit[]> {
  const out: JsonHit[] = [];
  const levels: Level[] = [];
  const add = (hits: readonly DetectorHit[], in_key: boolean) => {
    const path = hits.length === 0 ? "" : shownPath(root, levels, finder);
    for (const { kind, start, end } of hits)
      if (out.length < most) out.push({ kind, path, start, end, in_key });
  };
  const look = (here: JsonValue, key: string | undefined): void => {
    const searched = typeof here === "number" && Math.abs(here) >= TELLING_NUMBER ? String(here) : here;
    if (typeof searched === "string") add(finder(searched, key), false);
    else if (here !== null && typeof here === "object") levels.push(levelOf(here, key));
  };
  look(value, undefined);
  for (let units = 0; levels.length > 0 && out.length < most; ) {
    const level = levels[levels.length - 1]!;
    if (++level.at >= level.length) {
      levels.pop();
      continue;
    }
    const member = memberOf(level);
    const name = level.names?.[level.at];
    units +=
      (typeof member === "string" ? textUnits(member) : 1) + (name === undefined ? 0 : textUnits(name));
    if (units >= UNITS_PER_PAUSE) {
      units = 0;
      yield;
    }
    if (name !== undefined) add(finder(name), true);
    if (out.length < most) look(member, name ?? level.key);
  }
  return out;
}

/** Computed only for hits, because most values have none. */
function shownPath(root: string, levels: readonly Level[], finder: HitFinder): string {
  const pieces = levels.map(({ names, at }) => {
    if (names === null) return `[${at}]`;
    const name = names[at]!;
    return finder(name).length === 0 && showable(name) ? `.${name}` : "[*]";
  });
  return root + pieces.join("");
}

/** True for names that are safe to show: short identifiers that are not secrets. */
function showable(name: string): boolean {
  return PLAIN_NAME.test(name) && findSecrets(name).length === 0;
}

/** Changes the strings and numbers of a JSON value, by the name of their field, and the names of fields. */
export interface JsonChange {
  leaf(value: string | number, key: string | undefined): JsonValue;
  name(name: string): string;
  /** Name that applies to the content of a field. */
  within(name: string, key: string | undefined): string;
}

interface ChangedLevel {
  readonly level: Level;
  readonly out: JsonValue[] | JsonObject;
  /** Set for objects only. */
  readonly free: UniqueNames | undefined;
}

/** Copies a value with changes. If two names become equal, both entries stay. */
export function* changingJson(value: JsonValue, change: JsonChange, key?: string): PausableWork<JsonValue> {
  const levels: ChangedLevel[] = [];
  const changed = (here: JsonValue, key: string | undefined): JsonValue => {
    if (typeof here === "string" || typeof here === "number") return change.leaf(here, key);
    if (here === null || typeof here !== "object") return here;
    const out = Array.isArray(here) ? [] : {};
    levels.push({
      level: levelOf(here, key),
      out,
      free: Array.isArray(here) ? undefined : new UniqueNames(),
    });
    return out;
  };
  const whole = changed(value, key);
  for (let units = 0; levels.length > 0; ) {
    const { level, out, free } = levels[levels.length - 1]!;
    if (++level.at >= level.length) {
      levels.pop();
      continue;
    }
    const member = memberOf(level);
    const name = level.names?.[level.at];
    units +=
      (typeof member === "string" ? textUnits(member) : 1) + (name === undefined ? 0 : textUnits(name));
    if (units >= UNITS_PER_PAUSE) {
      units = 0;
      yield;
    }
    if (name === undefined) (out as JsonValue[])[level.at] = changed(member, level.key);
    else {
      const own = free!.nameIn(out as JsonObject, change.name(name));
      (out as JsonObject)[own] = changed(member, change.within(name, level.key));
    }
  }
  return whole;
}

/** Changes every string of a value, field names included. */
export function mapStrings(value: JsonValue, change: (text: string, key?: string) => string): JsonValue {
  return runAtOnce(
    changingJson(value, {
      leaf: (here, key) => {
        if (typeof here === "string") return change(here, key);
        if (Math.abs(here) < TELLING_NUMBER) return here;
        const changed = change(String(here), key);
        return changed === String(here) ? here : changed;
      },
      name: (name) => change(name),
      within: (name) => name,
    }),
  );
}

/** Removes credentials and, if `pii` is set, personal data. */
export function redactJson(value: JsonValue, options: { pii: boolean }): JsonValue {
  const change = (text: string, key?: string) => {
    const safe = redactSecrets(text, key);
    return options.pii ? redactPii(safe, key) : safe;
  };
  return mapStrings(value, change);
}
