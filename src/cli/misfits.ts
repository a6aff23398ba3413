/**
 * Warns of what can never take effect in a policy, and of what it and the manifests say past each other, such as a rule
 * that asks about what a card does not show.
 */
import { existsSync } from "node:fs";
import { labelsOf } from "../app/operations/simulate/jobs.ts";
import { doReading } from "../app/sandbox/readings.ts";
import { readTextFile } from "../config/files.ts";
import { loadManifests } from "../config/manifest-source.ts";
import type { Settings } from "../config/settings.ts";
import { unseenPaths } from "../model/card/unseen.ts";
import type { LoadedManifests } from "../model/manifest/load.ts";
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
  const labels = manifests === null ? [] : labelsOf(manifests);
  const now_ms = io.clock.now();
  const unseen = manifests === null ? [] : unseenPaths(policy, manifests);
  const idle = doReading({ read: "policy_warnings", policy: { doc: policy }, labels, now_ms });
  for (const warning of [...unseen, ...idle]) io.err(`warning: ${printable(warning)}`);
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
