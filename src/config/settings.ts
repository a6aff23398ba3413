/**
 * The settings table and the type it makes. A key that is not here does not exist: the file is refused,
 * nothing documents it, and no code can read it.
 */
import type { DurationRow, Row, Section } from "./row.ts";
import { GATEWAY_ROWS } from "./sections/gateway.ts";
import { IDENTITY_ROWS } from "./sections/identity.ts";
import { OPERATIONS_ROWS } from "./sections/operations.ts";
import { SERVER_ROWS } from "./sections/server.ts";

export const SETTINGS = { ...SERVER_ROWS, ...IDENTITY_ROWS, ...OPERATIONS_ROWS, ...GATEWAY_ROWS } as const;

type Table = typeof SETTINGS;
type ValueOf<R> = R extends Row<infer T> ? T : never;
type SectionValues<R> = {
  [K in keyof R as R[K] extends DurationRow ? `${K & string}_ms` : K]: ValueOf<R[K]>;
};

export type SettingValues = {
  [K in keyof Table]: Table[K] extends Section<infer R> ? SectionValues<R> : ValueOf<Table[K]>;
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
    /** By dotted key, such as `listen.port`. */
    readonly origins: ReadonlyMap<string, Origin>;
    /** What is legal and probably not meant. */
    readonly warnings: readonly string[];
  };
}

/** Every row with its dotted key, in the order of the table. */
export function allRows(): { key: string; path: [string] | [string, string]; row: Row }[] {
  return Object.entries(SETTINGS as Record<string, Row | Section>).flatMap(([name, entry]) =>
    "rows" in entry
      ? Object.entries(entry.rows).map(([key, row]) => ({ key: `${name}.${key}`, path: [name, key] as [string, string], row }))
      : [{ key: name, path: [name] as [string], row: entry }],
  );
}

/** A gateway speaks HTTP when a `listen` was written down; a PORT in the environment alone is not that. */
export function listenGiven(settings: Settings): boolean {
  return ["listen.host", "listen.port"].some((key) => {
    const from = settings.meta.origins.get(key)?.from;
    return from === "file" || from === "flag";
  });
}
