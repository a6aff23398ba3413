/**
 * Warns of what a policy and manifests say past each other: a rule that asks about what a card does not show, an idle
 * flow.
 */
import { existsSync } from "node:fs";
import { readTextFile } from "../config/files.ts";
import { loadManifests } from "../config/manifest-source.ts";
import type { Settings } from "../config/settings.ts";
import { createEgress } from "../egress/egress.ts";
import { unseenPaths } from "../model/card/unseen.ts";
import { idleFlows } from "../model/policy/idle-flows.ts";
import { loadPolicy } from "../model/policy/load.ts";
import type { PolicyDoc } from "../model/policy/schema.ts";
import { type Io, printable } from "./io.ts";

/** One side is what the command checks; the other comes from the settings, where they name one that loads. */
export async function warnMisfits(
  io: Io,
  settings: Settings,
  given: { policy?: PolicyDoc; manifests?: string },
): Promise<void> {
  const policy = given.policy ?? (await configuredPolicy(settings));
  if (policy === null) return;
  const egress = createEgress(settings.egress, {});
  try {
    const manifests = await loadManifests({ path: given.manifests ?? settings.manifests, egress });
    for (const warning of [...unseenPaths(policy, manifests), ...idleFlows(policy, manifests.all)])
      io.err(`warning: ${printable(warning)}`);
  } catch {
    // What does not load is told by the command that checks it; there is nothing to compare with here.
  } finally {
    await egress.close();
  }
}

async function configuredPolicy({ policy }: Settings): Promise<PolicyDoc | null> {
  if (policy === null || !existsSync(policy)) return null;
  return readTextFile(policy)
    .then((text) => loadPolicy(text, policy))
    .catch(() => null);
}
