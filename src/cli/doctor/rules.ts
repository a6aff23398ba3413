/** Checks manifests and policy as the server would load them, and runs the policy's tests. */
import { parseApprovers, requirementsFor } from "../../auth/approvers.ts";
import { readTextFileSync } from "../../config/files.ts";
import { isRemote } from "../../config/setting-row.ts";
import { SvcError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { type LoadedRules, openRules, type RegistryRules } from "../../operations/background/rules-source.ts";
import { registryRules } from "../../registry/active-rules.ts";
import { toolLabels } from "../../rules/manifest/labels.ts";
import type { LoadedManifests } from "../../rules/manifest/load.ts";
import type { PolicyDoc } from "../../rules/policy/schema.ts";
import { runPolicyTests } from "../../rules/policy/tests/tests.ts";
import { type ServiceLogger, silentLogger } from "../../telemetry/log.ts";
import {
  type CheckContext,
  type DoctorFinding,
  failFindings,
  firstNames,
  okFinding,
  warnFinding,
} from "./finding.ts";

const MANIFESTS = "manifests";
const POLICY = "policy";
const FIX_MANIFESTS = "fix the file; check it with svc validate <path>";
const FIX_POLICY = "fix the file; check it with svc policy check <file>";

export async function checkRuleFiles(world: CheckContext): Promise<DoctorFinding[]> {
  const registry = registryRules(world.settings.registry);
  const manifests = await loadManifestsOf(world, registry);
  const policy = await loadPolicyOf(world, registry, manifests.set);
  return [...manifests.findings, ...policy];
}

interface LoadedSet {
  set: LoadedManifests | null;
  findings: DoctorFinding[];
}

async function loadManifestsOf(world: CheckContext, registry: RegistryRules): Promise<LoadedSet> {
  const { manifests: path } = world.settings;
  if (path === null && registry.manifestsPath === null) {
    const fix = "set SVC_MANIFESTS or manifests:";
    return {
      set: null,
      findings: [warnFinding(MANIFESTS, "none are configured, so enforce mode blocks every call", fix)],
    };
  }
  const warnings: string[] = [];
  const log: ServiceLogger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  const onlyManifests = { ...registry, activeFile: null, activePolicy: async () => null };
  const load = (data: string | null) =>
    openRules({
      settings: { manifests: path, policy: null, data, ledger_origin: null },
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
    return { set: null, findings: failFindings(MANIFESTS, error, FIX_MANIFESTS) };
  }
  const { manifests } = rules;
  const places = [path, registry.manifestsPath].filter((place) => place !== null).map(shownPlace);
  return {
    set: manifests,
    findings: [
      okFinding(
        MANIFESTS,
        `${formatCountOf(manifests.all.length, "manifest")} in ${[...new Set(places)].join(" and ")}`,
      ),
      ...warnings.map((text) => warnFinding(MANIFESTS, text, "fix the entry, or see the guide to manifests")),
      ...drafts(manifests),
    ],
  };
}

/** If a remote manifest source is unreachable, loads its last good copy, as the server does. */
function fromKeptCopy<T>(error: unknown, path: string | null, load: () => Promise<T>): Promise<T> {
  const outOfReach = error instanceof SvcError && error.code === "delivery_failed";
  if (path === null || !isRemote(path) || !outOfReach) throw error;
  return load();
}

function shownPlace(place: string): string {
  return isRemote(place) ? new URL(place).host : place;
}

/** Warns about tools that have only draft manifests. */
function drafts(set: LoadedManifests): DoctorFinding[] {
  const tools = [...new Set(set.all.map(({ tool }) => tool))].filter(
    (tool) => set.active(tool)?.lifecycle === "draft",
  );
  if (tools.length === 0) return [];
  const text = `${formatCountOf(tools.length, "tool has", "tools have")} only a draft, which enforce mode ignores: ${firstNames(tools)}`;
  return [warnFinding(MANIFESTS, text, "approve them, or set lifecycle: approved")];
}

async function loadPolicyOf(
  { settings, egress, env }: CheckContext,
  registry: RegistryRules,
  manifests: LoadedManifests | null,
): Promise<DoctorFinding[]> {
  const onlyPolicy = { ...registry, manifestsPath: null };
  let rules: LoadedRules;
  let active: { file: string } | null;
  try {
    active = await registry.activePolicy();
    const log = silentLogger;
    const { policy, ledger_origin } = settings;
    const given = { manifests: null, policy, ledger_origin, data: null };
    rules = (await openRules({ settings: given, egress, log, registry: onlyPolicy })).current();
  } catch (error) {
    return failFindings(POLICY, error, FIX_POLICY);
  }
  const file = active?.file ?? settings.policy;
  if (file === null)
    return [okFinding(POLICY, "none is configured: manifests, scopes and halts decide alone")];
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
      fix: "fix the rule or the test; run them with svc policy test <file>",
    }));
  }
  const tests =
    results.length === 0
      ? "it has no tests"
      : `its ${formatCountOf(results.length, "test passes", "tests pass")}`;
  return [
    okFinding(POLICY, `${formatCountOf(policy.doc.rules?.length ?? 0, "rule")} in ${file}; ${tests}`),
    ...unverifiedTools(settings.approvers, policy.doc, manifests),
  ];
}

const APPROVERS = "approvers";

/** Tools whose signed approvals are only checked by the server, because no `require` names them. */
function unverifiedTools(
  path: string | null,
  doc: PolicyDoc,
  manifests: LoadedManifests | null,
): DoctorFinding[] {
  const all = doc.approvals?.signed === true;
  const rules = (doc.rules ?? []).filter(
    ({ action, approval }) => action === "require_approval" && (all || approval?.signed === true),
  );
  if (rules.length === 0) return [];
  try {
    const file = path === null ? null : parseApprovers(readTextFileSync(path), path);
    const isNamed = (tool: string) => file !== null && requirementsFor(file, tool).length > 0;
    const tools = new Set((manifests?.all ?? []).map(({ tool }) => tool));
    const signed = [...tools].filter((tool) =>
      rules.some(({ match }) => globMatches(match?.tool ?? "*", tool)),
    );
    const unnamed = signed.filter((tool) => !isNamed(tool));
    if (unnamed.length === 0) return [okFinding(APPROVERS, "the file names every tool with a signed rule")];
    const text = `signed approvals are verified by the server alone for ${firstNames(unnamed)}`;
    return [warnFinding(APPROVERS, text, "name the tools under require in the approvers file")];
  } catch (error) {
    return failFindings(APPROVERS, error, "fix the approvers file");
  }
}
