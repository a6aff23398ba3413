/** The effective settings for people: each key, its value with secrets masked, and where it came from. */
import { showDuration } from "../kernel/duration.ts";
import { MASKED } from "./mask.ts";
import { isDuration, type SettingRow } from "./row.ts";
import { type Origin, type Settings, settingRows } from "./settings.ts";

interface SettingLine {
  readonly key: string;
  /** JSON-ready; durations as a person writes them. */
  readonly value: unknown;
  readonly origin: Origin;
  readonly about: string;
}

export function describeSettings(settings: Settings): SettingLine[] {
  const values = settings as unknown as Record<string, unknown>;
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

/** What `svc config show` prints: a line for each key. */
export function renderSettings(settings: Settings): string {
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

export function showOrigin(origin: Origin): string {
  if (origin.from === "default") return "default";
  return origin.from === "file" ? `${origin.file}:${origin.line}` : origin.name;
}

export function shownValue(row: SettingRow, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (row.mask !== undefined) return row.mask(value);
  if (row.secret) return MASKED;
  return isDuration(row) ? showDuration(value as number).replaceAll(" ", "") : value;
}
