/**
 * Detects the store in a data directory. Commands that only read or decide use the existing store and never create one:
 * an empty new store would look as if all were well.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { LoadedSettings } from "../config/settings.ts";
import { invalidError } from "../kernel/errors.ts";

/** File that each kind of store creates first. */
const MARKS = { files: "ledger.jsonl", sqlite: "svc.db" } as const;
type Kind = keyof typeof MARKS;

const kindsIn = (data: string): Kind[] =>
  (Object.keys(MARKS) as Kind[]).filter((kind) => existsSync(join(data, MARKS[kind])));

/** Returns the settings with the detected kind of store, unless `store` is set explicitly. */
export function withDetectedStore(settings: LoadedSettings): LoadedSettings {
  if ((settings.meta.origins.get("store")?.from ?? "default") !== "default") return settings;
  const [found, more] = kindsIn(settings.data);
  return found === undefined || more !== undefined ? settings : { ...settings, store: found };
}

/** Commands that need an existing store. */
const ON_WHAT_IS_THERE = new Set([
  ...[
    "runs",
    "show",
    "export",
    "plan",
    "rollback",
    "resolve",
    "horizon",
    "lineage",
    "replay",
    "simulate",
    "report",
  ],
  ...["oversight", "bundle", "approvals list", "approvals show", "approvals watch", "approvals approve"],
  ...["approvals deny", "plans list", "plans show", "plans approve", "plans deny", "grants list"],
  ...["grants preview", "grants revoke", "halt list", "halt lift", "hold list", "hold release"],
  ...["capture list", "capture purge", "retention plan", "retention apply", "policy suggest", "backup"],
]);
/** Commands that use a store if there is one and can work without. */
const WITH_OR_WITHOUT = new Set(["impact", "speculate", "registry list"]);

/** Whether the command can use an in-memory store because none exists. Throws if the command needs an existing one. */
export function canRunWithoutStore(command: string, { store, data }: LoadedSettings): boolean {
  if (store === "postgres") return false;
  const kinds = kindsIn(data);
  if (kinds.includes(store)) return false;
  if (WITH_OR_WITHOUT.has(command)) return true;
  if (!ON_WHAT_IS_THERE.has(command)) return false;
  const [other] = kinds;
  if (other !== undefined)
    throw invalidError(
      `${data}: contains a store of kind ${other}; use --store ${other}, or omit the option`,
    );
  if (!existsSync(data)) throw invalidError(`${data}: is not a data directory; pass one with -d <dir>`);
  const inside = join(data, "data");
  throw invalidError(
    `${data}: contains no store; pass the data directory with -d ${kindsIn(inside).length > 0 ? inside : "<dir>"}`,
  );
}
