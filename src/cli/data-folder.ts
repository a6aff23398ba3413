/**
 * Which store lies in a data folder: what is there is read, and a command that only reads or decides makes no new
 * one beside it, of which it would then say that all is well.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../config/settings.ts";
import { invalid } from "../kernel/errors.ts";

/** A file that a store of this kind has from its first moment on. */
const MARKS = { files: "ledger.jsonl", sqlite: "svc.db" } as const;
type Kind = keyof typeof MARKS;

const kindsIn = (data: string): Kind[] =>
  (Object.keys(MARKS) as Kind[]).filter((kind) => existsSync(join(data, MARKS[kind])));

/** The settings with the store that the folder holds, where the options name no other. */
export function withFoundStore(settings: Settings): Settings {
  if ((settings.meta.origins.get("store")?.from ?? "default") !== "default") return settings;
  const [found, more] = kindsIn(settings.data);
  return found === undefined || more !== undefined ? settings : { ...settings, store: found };
}

/** What works on things that are there already: by the words of the command. */
const ON_WHAT_IS_THERE = new Set([
  ...["runs", "show", "export", "plan", "rollback", "resolve", "horizon", "replay", "simulate", "report"],
  ...["oversight", "bundle", "approvals list", "approvals show", "approvals watch", "approvals approve"],
  ...["approvals deny", "plans list", "plans show", "plans approve", "plans deny", "grants list"],
  ...["grants preview", "grants revoke", "halt list", "halt lift", "hold list", "hold release"],
  ...["capture list", "capture purge", "retention plan", "retention apply", "policy suggest", "backup"],
]);
/** What looks at the store where there is one, and can do without. */
const WITH_OR_WITHOUT = new Set(["impact", "speculate", "registry list"]);

/** Whether the command works on a store in memory, since there is none; throws where it needs the one that is not there. */
export function doesWithoutStore(command: string, { store, data }: Settings): boolean {
  if (store === "postgres") return false;
  const kinds = kindsIn(data);
  if (kinds.includes(store)) return false;
  if (WITH_OR_WITHOUT.has(command)) return true;
  if (!ON_WHAT_IS_THERE.has(command)) return false;
  const [other] = kinds;
  if (other !== undefined)
    throw invalid(`${data}: holds a store of kind ${other}; say --store ${other}, or leave the option out`);
  if (!existsSync(data)) throw invalid(`${data}: is not a data folder; give one with -d <dir>`);
  const inside = join(data, "data");
  throw invalid(
    `${data}: holds no store; give the data folder with -d ${kindsIn(inside).length > 0 ? inside : "<dir>"}`,
  );
}
