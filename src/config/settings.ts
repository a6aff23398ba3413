/**
 * The settings table and the type it makes. A key that is not here does not exist: the file is refused,
 * nothing documents it, and no code can read it.
 */
import { type DurationRow, isSection, type Section, type SettingRow } from "./row.ts";
import { GATEWAY_ROWS } from "./sections/gateway.ts";
import { IDENTITY_ROWS } from "./sections/identity.ts";
import { OPERATIONS_ROWS } from "./sections/operations.ts";
import { QUOTA_ROWS } from "./sections/quotas.ts";
import { SERVER_ROWS } from "./sections/server.ts";

export const SETTINGS = {
  ...SERVER_ROWS,
  ...IDENTITY_ROWS,
  ...QUOTA_ROWS,
  ...OPERATIONS_ROWS,
  ...GATEWAY_ROWS,
} as const;

type Table = typeof SETTINGS;
type ValueOf<R> = R extends SettingRow<infer T> ? T : never;
type SectionValues<R> = {
  [K in keyof R as R[K] extends DurationRow ? `${K & string}_ms` : K]: ValueOf<R[K]>;
};

type SettingValues = {
  [K in keyof Table as Table[K] extends DurationRow ? `${K & string}_ms` : K]: Table[K] extends Section<
    infer R
  >
    ? SectionValues<R>
    : ValueOf<Table[K]>;
};

/** Where a value came from: the strongest of the four that gave one. */
export type Origin =
  | { from: "flag"; name: string }
  | { from: "env"; name: string }
  | { from: "file"; file: string; line: number }
  | { from: "default" };

export interface Settings extends SettingValues {
  readonly meta: {
    /** The config file that was read. */
    readonly file: string | null;
    /** By dotted key, such as `listen.port`; a section that the file holds has an entry of its own. */
    readonly origins: ReadonlyMap<string, Origin>;
    /** What is legal and probably not meant. */
    readonly warnings: readonly string[];
  };
}

/** The key file in force: one named by option or environment wins over the file's `auth.keys`. */
export function keyFileOf({ keys, auth, meta }: Settings): string | null {
  const from = meta.origins.get("keys")?.from;
  return from === "flag" || from === "env" ? keys : (auth.keys ?? keys);
}

/** For a command that ends by itself and prints what it did: of the log it shows what is wrong, unless it is told more. */
export function quiet(settings: Settings): Settings {
  const given = settings.meta.origins.get("log.level")?.from ?? "default";
  return given === "default" ? { ...settings, log: { ...settings.log, level: "warn" } } : settings;
}

/** The table as plain entries, for walking. */
export const ENTRIES: readonly (readonly [name: string, entry: SettingRow | Section])[] =
  Object.entries(SETTINGS);

interface KeyedRow {
  /** Dotted, such as `listen.port`. */
  readonly key: string;
  readonly path: readonly [string] | readonly [string, string];
  readonly row: SettingRow;
}

/** Every row, in the order of the table. */
export function settingRows(): KeyedRow[] {
  return ENTRIES.flatMap(([name, entry]): KeyedRow[] => {
    if (!isSection(entry)) return [{ key: name, path: [name], row: entry }];
    return Object.entries(entry.rows).map(([key, row]) => ({
      key: `${name}.${key}`,
      path: [name, key],
      row,
    }));
  });
}

/**
 * A gateway speaks HTTP when a `listen` was written down, in the file or as an option. A PORT that happens
 * to be in the environment does not turn a stdio session into a server.
 */
export function listenGiven(settings: Settings): boolean {
  return ["listen", "listen.host", "listen.port"].some((key) => {
    const from = settings.meta.origins.get(key)?.from;
    return from === "file" || from === "flag";
  });
}
