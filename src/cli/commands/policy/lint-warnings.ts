/**
 * Lint warnings for a policy: rules that can never apply, and mismatches with the manifests, such as an approval rule
 * on a value that the card does not show.
 */
import { existsSync } from "node:fs";
import { readTextFile } from "../../../config/files.ts";
import { loadManifests } from "../../../config/manifest-source.ts";
import type { LoadedSettings } from "../../../config/settings.ts";
import { uncoveredPaths } from "../../../govern/cards/uncovered-paths.ts";
import { labelsOf } from "../../../operations/simulate/jobs.ts";
import { runParseTask } from "../../../operations/worker/parse-tasks.ts";
import type { LoadedManifests } from "../../../rules/manifest/load.ts";
import { loadPolicy } from "../../../rules/policy/load.ts";
import type { PolicyDoc } from "../../../rules/policy/schema.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import { withEgress } from "../../with-egress.ts";

/** Checks the given policy or manifests against the other side from the settings, if that loads. */
export async function warnLintProblems(
  io: CommandIo,
  settings: LoadedSettings,
  given: { policy?: PolicyDoc; manifests?: LoadedManifests },
): Promise<void> {
  const policy = given.policy ?? (await configuredPolicy(settings));
  if (policy === null) return;
  const manifests = given.manifests ?? (await configuredManifests(settings));
  const labels = manifests === null ? [] : labelsOf(manifests);
  const now_ms = io.clock.now();
  const unseen = manifests === null ? [] : uncoveredPaths(policy, manifests);
  const idle = runParseTask({ read: "policy_warnings", policy: { doc: policy }, labels, now_ms });
  for (const warning of [...unseen, ...idle]) io.err(`warning: ${escapeControls(warning)}`);
}

/** Returns null for manifests that do not load. The command that validates them reports the error. */
async function configuredManifests(settings: LoadedSettings): Promise<LoadedManifests | null> {
  const { manifests: path } = settings;
  return withEgress(settings, path, (egress) => loadManifests({ path, egress })).catch(() => null);
}

async function configuredPolicy({ policy }: LoadedSettings): Promise<PolicyDoc | null> {
  if (policy === null || !existsSync(policy)) return null;
  return readTextFile(policy)
    .then((text) => loadPolicy(text, policy))
    .catch(() => null);
}
