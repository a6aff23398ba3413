/** The servers' configuration in a run, with a key for each caller. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256Hex } from "../../../src/kernel/hash.ts";

// The run is compiled into node_modules/.cache/<folder>/stress/fault/cluster.
export const ROOT = fileURLToPath(new URL("../../../../../../", import.meta.url));
export const CLUSTER_SOURCES = join(ROOT, "stress", "fault", "cluster");

/** Who asks; each key's value is its name behind `cluster-`. */
const KEYS = { bot: "agent", ann: "approver", ben: "approver", root: "admin" } as const;
export type Caller = keyof typeof KEYS;
export const keyOf = (caller: Caller): string => `cluster-${caller}`;

export function writeConfig(folder: string): void {
  cpSync(join(CLUSTER_SOURCES, "config"), folder, { recursive: true });
  const keys = Object.entries(KEYS).map(([name, role]) => ({
    name,
    role,
    max_permissions: ["*"],
    key_sha256: sha256Hex(keyOf(name as Caller)),
  }));
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
}
