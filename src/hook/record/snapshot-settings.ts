/** Reads `snapshot` in the hook's settings. */
import { isRecord } from "../clients/clients.ts";
import { SNAPSHOT_DEFAULTS, type SnapshotSettings } from "./record-scope.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, kb: 1_024, mb: 1_024 ** 2, gb: 1_024 ** 3 };
const FIELDS = ["max_file", "max_total", "exclude", "required"];

/** Throws with an explanation if a field is unknown or wrong. `exclude` adds to the directories that are rebuilt. */
export function readSnapshotSettings(given: unknown, file: string): SnapshotSettings {
  if (given === undefined) return SNAPSHOT_DEFAULTS;
  if (!isRecord(given)) throw new Error(`${file}: snapshot: must be an object`);
  const unknown = Object.keys(given).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined)
    throw new Error(`${file}: snapshot.${unknown}: unknown; the fields are ${FIELDS.join(", ")}`);
  const { exclude = [], required = false } = given;
  if (!Array.isArray(exclude) || !exclude.every((one) => typeof one === "string"))
    throw new Error(`${file}: snapshot.exclude: must be a list of directories`);
  if (typeof required !== "boolean") throw new Error(`${file}: snapshot.required: must be true or false`);
  return {
    max_file: sizeOf(given["max_file"], SNAPSHOT_DEFAULTS.max_file, `${file}: snapshot.max_file`),
    max_total: sizeOf(given["max_total"], SNAPSHOT_DEFAULTS.max_total, `${file}: snapshot.max_total`),
    exclude: [...SNAPSHOT_DEFAULTS.exclude, ...(exclude as string[])],
    required,
  };
}

function sizeOf(given: unknown, usual: number, name: string): number {
  if (given === undefined) return usual;
  const [, digits, unit = ""] = /^(\d{1,12})\s*([kmg]b)?$/i.exec(String(given)) ?? [];
  if (digits === undefined) throw new Error(`${name}: must be a number of bytes, such as 20MB`);
  return Number(digits) * UNITS[unit.toLowerCase()]!;
}
