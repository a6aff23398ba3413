/**
 * The settings table and its type. Keys that are not in the table are rejected, undocumented and unreadable for code.
 */
import { GATEWAY_ROWS } from "./sections/gateway.ts";
import { IDENTITY_ROWS } from "./sections/identity.ts";
import { OPERATIONS_ROWS } from "./sections/operations.ts";
import { PROXY_ROWS } from "./sections/proxy.ts";
import { QUOTA_ROWS } from "./sections/quotas.ts";
import { SERVER_ROWS } from "./sections/server.ts";
import { type DurationRow, isSection, type SettingRow, type SettingSection } from "./setting-row.ts";

export const SETTINGS_TABLE = {
  ...SERVER_ROWS,
  ...IDENTITY_ROWS,
  ...QUOTA_ROWS,
  ...OPERATIONS_ROWS,
  ...GATEWAY_ROWS,
  ...PROXY_ROWS,
} as const;

type Table = typeof SETTINGS_TABLE;
type ValueOf<R> = R extends SettingRow<infer T> ? T : never;
type SectionValues<R> = {
  [K in keyof R as R[K] extends DurationRow ? `${K & string}_ms` : K]: ValueOf<R[K]>;
};

type SettingValues = {
  [K in keyof Table as Table[K] extends DurationRow
    ? `${K & string}_ms`
    : K]: Table[K] extends SettingSection<infer R> ? SectionValues<R> : ValueOf<Table[K]>;
};

/** Source of a value. */
export type SettingOrigin =
  | { from: "flag"; name: string }
  | { from: "env"; name: string }
  | { from: "file"; file: string; line: number }
  | { from: "default" };

export interface LoadedSettings extends SettingValues {
  readonly meta: {
    /** The config file, if one was read. */
    readonly file: string | null;
    /** Origins by dotted key, such as `listen.port`. Sections present in the file have an entry too. */
    readonly origins: ReadonlyMap<string, SettingOrigin>;
    /** Valid settings that are probably mistakes. */
    readonly warnings: readonly string[];
  };
}

/** Returns the key file to use. One from an option or the environment overrides the file's `auth.keys`. */
export function keyFileOf({ keys, auth, meta }: LoadedSettings): string | null {
  const from = meta.origins.get("keys")?.from;
  return from === "flag" || from === "env" ? keys : (auth.keys ?? keys);
}

/**
 * Settings for commands that print their own output: the log shows only warnings and errors, unless `log.level` is set.
 */
export function withQuietLog(settings: LoadedSettings): LoadedSettings {
  const given = settings.meta.origins.get("log.level")?.from ?? "default";
  return given === "default" ? { ...settings, log: { ...settings.log, level: "warn" } } : settings;
}

/** Entries of the table, in its order. */
export const SETTING_ENTRIES: readonly (readonly [name: string, entry: SettingRow | SettingSection])[] =
  Object.entries(SETTINGS_TABLE);

interface KeyedRow {
  /** Dotted key, such as `listen.port`. */
  readonly key: string;
  readonly path: readonly [string] | readonly [string, string];
  readonly row: SettingRow;
}

/** Returns all rows in the order of the table. */
export function settingRows(): KeyedRow[] {
  return SETTING_ENTRIES.flatMap(([name, entry]): KeyedRow[] => {
    if (!isSection(entry)) return [{ key: name, path: [name], row: entry }];
    return Object.entries(entry.rows).map(([key, row]) => ({
      key: `${name}.${key}`,
      path: [name, key],
      row,
    }));
  });
}

/**
 * Whether `listen` is set in the file or by an option, which makes a gateway serve HTTP. A PORT in the environment does
 * not turn a stdio session into a server.
 */
export function hasListenSetting(settings: LoadedSettings): boolean {
  return ["listen", "listen.host", "listen.port"].some((key) => {
    const from = settings.meta.origins.get(key)?.from;
    return from === "file" || from === "flag";
  });
}
