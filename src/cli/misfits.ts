/**
 * Warns of what a policy and manifests say past each other: a rule that asks about what a card does not show, an idle
 * flow.
 */
import { existsSync } from "node:fs";
import { readTextFile } from "../config/files.ts";
import { loadManifests } from "../config/manifest-source.ts";
import type { Settings } from "../config/settings.ts";
import { unseenPaths } from "../model/card/unseen.ts";
import type { LoadedManifests } from "../model/manifest/load.ts";
import { idleFlows } from "../model/policy/idle-flows.ts";
import { loadPolicy } from "../model/policy/load.ts";
import type { PolicyDoc } from "../model/policy/schema.ts";
import { type Io, printable } from "./io.ts";
import { withEgress } from "./with-egress.ts";

/** One side is what the command checks; the other comes from the settings, where they name one that loads. */
export async function warnMisfits(
  io: Io,
  settings: Settings,
  given: { policy?: PolicyDoc; manifests?: LoadedManifests },
): Promise<void> {
  const policy = given.policy ?? (await configuredPolicy(settings));
  if (policy === null) return;
  const manifests = given.manifests ?? (await configuredManifests(settings));
  if (manifests === null) return;
  for (const warning of [...unseenPaths(policy, manifests), ...idleFlows(policy, manifests.all)])
    io.err(`warning: ${printable(warning)}`);
}

/** What does not load is told by the command that checks it; there is nothing to compare with here. */
async function configuredManifests(settings: Settings): Promise<LoadedManifests | null> {
  const { manifests: path } = settings;
  return withEgress(settings, path, (egress) => loadManifests({ path, egress })).catch(() => null);
}

async function configuredPolicy({ policy }: Settings): Promise<PolicyDoc | null> {
  if (policy === null || !existsSync(policy)) return null;
  return readTextFile(policy)
    .then((text) => loadPolicy(text, policy))
    .catch(() => null);
}
