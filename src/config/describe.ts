/** Lists the effective settings: key, value with secrets masked, and origin. */
import { formatDuration } from "../kernel/duration.ts";
import { MASKED_VALUE } from "./mask.ts";
import { isDuration, type SettingRow } from "./setting-row.ts";
import { type LoadedSettings, type SettingOrigin, settingRows } from "./settings.ts";

interface SettingLine {
  readonly key: string;
  /** JSON value. Durations are written as in the config file. */
  readonly value: unknown;
  readonly origin: SettingOrigin;
  readonly about: string;
}

export function describeSettings(settings: LoadedSettings): SettingLine[] {
  const values: Record<string, unknown> = { ...settings };
  return settingRows().map(({ key, path, row }) => {
    const group = path.length === 2 ? (values[path[0]] as Record<string, unknown>) : values;
    const name = isDuration(row) ? `${path.at(-1)}_ms` : path.at(-1)!;
    return {
      key,
      value: shownValue(row, group[name]),
      origin: settings.meta.origins.get(key) ?? { from: "default" },
      about: row.about,
    };
  });
}

/** Output of `svc config show`: one line per key. */
export function renderSettings(settings: LoadedSettings): string {
  const lines = describeSettings(settings).map(({ key, value, origin }) => ({
    key,
    value: value === null ? "-" : typeof value === "string" ? value : JSON.stringify(value),
    origin: showOrigin(origin),
  }));
  const width = (field: "key" | "value") =>
    Math.min(48, Math.max(...lines.map((line) => line[field].length)));
  const [keys, values] = [width("key"), width("value")];
  return lines
    .map(({ key, value, origin }) => `${key.padEnd(keys)}  ${value.padEnd(values)}  ${origin}\n`)
    .join("");
}

export function showOrigin(origin: SettingOrigin): string {
  if (origin.from === "default") return "default";
  return origin.from === "file" ? `${origin.file}:${origin.line}` : origin.name;
}

export function shownValue(row: SettingRow, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (row.mask !== undefined) return row.mask(value);
  if (row.secret) return MASKED_VALUE;
  return isDuration(row) ? formatDuration(value as number).replaceAll(" ", "") : value;
}
