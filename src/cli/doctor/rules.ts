/** Manifests and policy as the server would load them, and the policy's own tests. */

import { type LoadedRules, openRules, type RegistryRules } from "../../app/wiring/rules-source.ts";
import { isRemote } from "../../config/row.ts";
import { SvcError } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { toolLabels } from "../../model/manifest/labels.ts";
import type { LoadedManifests } from "../../model/manifest/load.ts";
import { runPolicyTests } from "../../model/policy/tests.ts";
import { registryRules } from "../../registry/rules.ts";
import { type Logger, silentLogger } from "../../telemetry/log.ts";
import { type DoctorFinding, failures, firstNames, ok, type World, warn } from "./finding.ts";

const MANIFESTS = "manifests";
const POLICY = "policy";
const FIX_MANIFESTS = "correct the file; svc validate <path> checks it alone";
const FIX_POLICY = "correct the file; svc policy check <file> checks it alone";

export async function checkRuleFiles(world: World): Promise<DoctorFinding[]> {
  const registry = registryRules(world.settings.registry);
  const manifests = await loadManifestsOf(world, registry);
  const policy = await loadPolicyOf(world, registry, manifests.set);
  return [...manifests.findings, ...policy];
}

interface LoadedSet {
  set: LoadedManifests | null;
  findings: DoctorFinding[];
}

async function loadManifestsOf(world: World, registry: RegistryRules): Promise<LoadedSet> {
  const { manifests: path } = world.settings;
  if (path === null && registry.manifestsPath === null) {
    const fix = "set SVC_MANIFESTS or manifests:";
    return {
      set: null,
      findings: [warn(MANIFESTS, "none are configured, so enforce mode blocks every call", fix)],
    };
  }
  const warnings: string[] = [];
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  const onlyManifests = { ...registry, activeFile: null, activePolicy: async () => null };
  const load = (data: string | null) =>
    openRules({
      settings: { manifests: path, policy: null, data },
      egress: world.egress,
      log,
      registry: onlyManifests,
    });
  let rules: LoadedRules;
  try {
    rules = (
      await load(null).catch((error: unknown) => fromKeptCopy(error, path, () => load(world.settings.data)))
    ).current();
  } catch (error) {
    return { set: null, findings: failures(MANIFESTS, error, FIX_MANIFESTS) };
  }
  const { manifests } = rules;
  const places = [path, registry.manifestsPath].filter((place) => place !== null).map(shownPlace);
  return {
    set: manifests,
    findings: [
      ok(MANIFESTS, `${plural(manifests.all.length, "manifest")} in ${[...new Set(places)].join(" and ")}`),
      ...warnings.map((text) => warn(MANIFESTS, text, "see the guide to manifests, or correct the entry")),
      ...drafts(manifests),
    ],
  };
}

/** A remote set that is out of reach is in force as its last good copy, if there is one. */
function fromKeptCopy<T>(error: unknown, path: string | null, load: () => Promise<T>): Promise<T> {
  const outOfReach = error instanceof SvcError && error.code === "delivery_failed";
  if (path === null || !isRemote(path) || !outOfReach) throw error;
  return load();
}

function shownPlace(place: string): string {
  return isRemote(place) ? new URL(place).host : place;
}

/** A tool for which nothing but a draft speaks. */
function drafts(set: LoadedManifests): DoctorFinding[] {
  const tools = [...new Set(set.all.map(({ tool }) => tool))].filter(
    (tool) => set.active(tool)?.lifecycle === "draft",
  );
  if (tools.length === 0) return [];
  const text = `${plural(tools.length, "tool has", "tools have")} only a draft, which enforce mode does not count: ${firstNames(tools)}`;
  return [warn(MANIFESTS, text, "approve them, or set lifecycle: approved")];
}

async function loadPolicyOf(
  { settings, egress, env }: World,
  registry: RegistryRules,
  manifests: LoadedManifests | null,
): Promise<DoctorFinding[]> {
  const onlyPolicy = { ...registry, manifestsPath: null };
  let rules: LoadedRules;
  let active: { file: string } | null;
  try {
    active = await registry.activePolicy();
    const log = silentLogger;
    const given = { manifests: null, policy: settings.policy, data: null };
    rules = (await openRules({ settings: given, egress, log, registry: onlyPolicy })).current();
  } catch (error) {
    return failures(POLICY, error, FIX_POLICY);
  }
  const file = active?.file ?? settings.policy;
  if (file === null) return [ok(POLICY, "none is configured: manifests, scopes and halts alone decide")];
  const { policy } = rules;
  const results = runPolicyTests(policy, {
    manifestFor(tool) {
      const found = manifests?.active(tool);
      return found === undefined ? null : toolLabels(found);
    },
    now_ms: env.now(),
  });
  const failed = results.filter((result) => !result.ok);
  if (failed.length > 0) {
    return failed.map(({ name, expected, got }) => ({
      check: POLICY,
      status: "fail",
      message: `${file}: test ${JSON.stringify(name)} expected ${expected}, got ${got}`,
      fix: "correct the rule or the test; svc policy test <file> runs them",
    }));
  }
  const tests =
    results.length === 0 ? "it has no tests" : `its ${plural(results.length, "test passes", "tests pass")}`;
  return [ok(POLICY, `${plural(policy.doc.rules?.length ?? 0, "rule")} in ${file}; ${tests}`)];
}
