/** Walks JSON with a finder: values and keys alike, since a secret can be the name of a field too. */
import type { Json, JsonObject } from "../../kernel/json.ts";
import { doAtOnce, type Paced, textUnits, UNITS_A_PAUSE } from "../../kernel/turns.ts";
import { FreeNames } from "./free-names.ts";
import type { Finder, Hit } from "./hit.ts";
import { redactPii } from "./pii.ts";
import { findSecrets, redactSecrets } from "./secrets.ts";

export interface JsonHit {
  readonly kind: string;
  /** Where: `$args.headers.authorization`. Names that could themselves be values are left out. */
  readonly path: string;
  readonly start: number;
  readonly end: number;
  /** The hit is in the field's name. */
  readonly in_key: boolean;
}

/** A card or phone number may be sent as a number; smaller ones can be neither. */
const TELLING_NUMBER = 1e6;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** A list or an object under way, and which of its members the walk is at. Members are looked at one by one, so that a walk can pause anywhere. */
interface Level {
  readonly of: Json[] | JsonObject;
  /** Of an object. */
  readonly names: string[] | null;
  readonly length: number;
  at: number;
  /** The name of the field that holds it. */
  readonly key: string | undefined;
}

function levelOf(of: Json[] | JsonObject, key: string | undefined): Level {
  const names = Array.isArray(of) ? null : Object.keys(of);
  return { of, names, length: names?.length ?? (of as Json[]).length, at: -1, key };
}

const memberOf = ({ of, names, at }: Level): Json =>
  names === null ? (of as Json[])[at]! : (of as JsonObject)[names[at]!]!;

/** Every hit in the value, in document order. `most` bounds the answer, not what is looked at before it. */
export function scanJson(value: Json, finder: Finder, root = "$args", most = 1_000): JsonHit[] {
  return doAtOnce(scanningJson(value, finder, root, most));
}

export function* scanningJson(value: Json, finder: Finder, root = "$args", most = 1_000): Paced<JsonHit[]> {
  const out: JsonHit[] = [];
  const levels: Level[] = [];
  const add = (hits: readonly Hit[], in_key: boolean) => {
    const path = hits.length === 0 ? "" : shownPath(root, levels, finder);
    for (const { kind, start, end } of hits)
      if (out.length < most) out.push({ kind, path, start, end, in_key });
  };
  const look = (here: Json, key: string | undefined): void => {
    const told = typeof here === "number" && Math.abs(here) >= TELLING_NUMBER ? String(here) : here;
    if (typeof told === "string") add(finder(told, key), false);
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
    if (units >= UNITS_A_PAUSE) {
      units = 0;
      yield;
    }
    if (name !== undefined) add(finder(name), true);
    if (out.length < most) look(member, name ?? level.key);
  }
  return out;
}

/** Written only for what was found: most values are not. */
function shownPath(root: string, levels: readonly Level[], finder: Finder): string {
  const pieces = levels.map(({ names, at }) => {
    if (names === null) return `[${at}]`;
    const name = names[at]!;
    return finder(name).length === 0 && showable(name) ? `.${name}` : "[*]";
  });
  return root + pieces.join("");
}

/** A name that can only be a name: short, an identifier, and no secret itself. */
function showable(name: string): boolean {
  return PLAIN_NAME.test(name) && findSecrets(name).length === 0;
}

/** How a value is changed: its texts and numbers by the name of the field that holds them, and the names themselves. */
export interface JsonChange {
  leaf(value: string | number, key: string | undefined): Json;
  name(name: string): string;
  /** The name that what lies in the field is changed by. */
  within(name: string, key: string | undefined): string;
}

interface ChangedLevel {
  readonly level: Level;
  readonly out: Json[] | JsonObject;
  /** Of an object. */
  readonly free: FreeNames | undefined;
}

/** The changed copy of a value. Two names may become the same one; every entry is kept. */
export function* changingJson(value: Json, change: JsonChange, key?: string): Paced<Json> {
  const levels: ChangedLevel[] = [];
  const changed = (here: Json, key: string | undefined): Json => {
    if (typeof here === "string" || typeof here === "number") return change.leaf(here, key);
    if (here === null || typeof here !== "object") return here;
    const out = Array.isArray(here) ? [] : {};
    levels.push({ level: levelOf(here, key), out, free: Array.isArray(here) ? undefined : new FreeNames() });
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
    if (units >= UNITS_A_PAUSE) {
      units = 0;
      yield;
    }
    if (name === undefined) (out as Json[])[level.at] = changed(member, level.key);
    else {
      const own = free!.nameIn(out as JsonObject, change.name(name));
      (out as JsonObject)[own] = changed(member, change.within(name, level.key));
    }
  }
  return whole;
}

/** The value with every string, names of fields included, changed by `change`. */
export function mapStrings(value: Json, change: (text: string, key?: string) => string): Json {
  return doAtOnce(
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

/** The value without credentials and, when asked, without personal data. */
export function redactJson(value: Json, options: { pii: boolean }): Json {
  const change = (text: string, key?: string) => {
    const safe = redactSecrets(text, key);
    return options.pii ? redactPii(safe, key) : safe;
  };
  return mapStrings(value, change);
}
