/** The registry: drafts of manifests and policies, and the decisions on them. */
import * as z from "zod";
import { hasRole, tenantBinding } from "../../govern/roles.ts";
import { conflictError, invalidError, notFoundError, ProblemsError } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { LedgerEvent } from "../../ledger/events.ts";
import { ManifestRegistry, registryEntryShape } from "../../registry/manifests.ts";
import { PolicyRegistry, policyShape } from "../../registry/policies.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { throwReloadConflict } from "../reload.ts";
import { boundedText, noFields, noteSchema, toolSchema } from "../schemas.ts";
import { checkPolicyText, comparePolicies, proveClaims, warningsOf } from "../simulate/jobs.ts";
import { parseOwn, parseSubmitted } from "../worker/parse.ts";

const NO_MANIFESTS = "no manifest registry folder is configured on this server";
const NO_POLICIES = "no policy registry folder is configured on this server";
const manifestsFeature = ({ settings }: ServiceApp) =>
  settings.registry.manifests === null ? NO_MANIFESTS : null;
/** A server without any registry gives the same message on each of its routes. */
const policiesFeature = (app: ServiceApp) =>
  app.settings.registry.policies === null ? (manifestsFeature(app) ?? NO_POLICIES) : null;

/** Drafts are parsed in a thread; so are large files of the folder. */
function manifests({ settings, core, rules }: ServiceApp, signal?: AbortSignal): ManifestRegistry {
  return new ManifestRegistry(settings.registry.manifests!, core.env, {
    draft: (given) => parseSubmitted({ read: "draft", given }, signal),
    withLifecycle: (yaml, to) => parseOwn({ read: "moved", yaml, to }),
    async entries(file, text) {
      const { entries } = await parseOwn({ read: "manifests", files: [{ file, text }] });
      return entries.map(({ manifest }) => manifest);
    },
    fits: (file, text) => rules.fits(file, text).catch(refused),
  });
}

function policies(app: ServiceApp, signal?: AbortSignal): PolicyRegistry {
  return new PolicyRegistry(app.settings.registry.policies!, app.core.env, {
    async check(yaml) {
      const checked = await checkPolicyText(app, yaml, { diff: false, signal });
      return checked.ok ? checked : refused(new ProblemsError(checked.problems));
    },
    async hash(text, file) {
      const digest = sha256Hex(text);
      const known = hashes.get(digest);
      if (known !== undefined) return known;
      const { hash } = await parseOwn({ read: "policy", text, file }).catch(refused);
      hashes.set(digest, hash);
      return hash;
    },
    async prove(text, file) {
      const results = await proveClaims(app, text, file, signal).catch(refused);
      const wrong = results.filter(({ result }) => result === "counterexample");
      if (wrong.length === 0) return;
      const failures = wrong.map(
        ({ name, at_least, counterexample }) =>
          `claim ${JSON.stringify(name)}: expected at least ${at_least}, got ${counterexample!.got} for ${JSON.stringify(counterexample!.input)}`,
      );
      throw conflictError(
        "claim_refuted",
        `${file} violates its own claims; fix the rules or the claim: ${failures.join("; ")}`,
      );
    },
    async isLooser(before, yaml) {
      const was = before === null ? null : { text: before, file: "the active version" };
      const diff = await comparePolicies(app, was, { text: yaml, file: "policy" }, signal).catch(refused);
      return diff.looser.length > 0 || !diff.complete;
    },
  });
}

/** Hashes of versions copied into the folder by hand, so that a listing does not parse them each time. */
const hashes = new LruMap<string, string>(1_000);

/** Problems in a submitted text are the sender's to fix. */
function refused(error: unknown): never {
  if (error instanceof ProblemsError) throw invalidError(error.problems.join("; "));
  throw error;
}

export const waitingPolicy = policyShape.extend({ waiting_for: z.literal("another admin") });

/** Records the decision on the ledger and activates it in this process at once. */
async function decided(
  { app, principal }: ApiCaller,
  event: LedgerEvent,
  detail: string,
  at?: string,
): Promise<void> {
  const { core } = app;
  const record = await core.store.transact({
    run: (tx) => tx.append({ event, actor: principal.name, ts_ms: core.env.now(), detail, tool: at }),
  });
  announceRecords(core.listeners, [record]);
  const { manifests, policy } = await app.rules.reload().catch(throwReloadConflict);
  app.log.info("reloaded", { manifests: manifests.all.length, policy: policy.hash });
}

export const readRegistry = defineOperation({
  id: "read_registry",
  summary: "List the manifests and policies in the registry",
  role: "operator",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({ manifests: z.array(registryEntryShape), policies: z.array(policyShape) }),
  feature: manifestsFeature,
  errors: { not_found: "no registry folder" },
  async run({ app }) {
    return {
      manifests: await manifests(app).list(),
      policies: policiesFeature(app) === null ? await policies(app).list() : [],
    };
  },
});

/** Text of a policy version, for callers who can read the registry. */
export async function policyVersionText(app: ServiceApp, version: string): Promise<string> {
  const off = policiesFeature(app);
  if (off !== null) throw notFoundError(off);
  return policies(app).text(version);
}

export const publishManifest = defineOperation({
  id: "publish_manifest",
  summary: "Publish a manifest as a draft",
  role: "operator",
  input: z.strictObject({
    manifest: z.record(z.string(), z.unknown()).optional(),
    yaml: boundedText(SERVICE_LIMITS.body_bytes).optional(),
  }),
  output: registryEntryShape,
  feature: manifestsFeature,
  errors: {
    not_found: "no registry folder",
    conflict: "this version already exists",
    too_many: "too many simulations are under way",
  },
  async run(call, body) {
    if ((body.manifest === undefined) === (body.yaml === undefined))
      throw invalidError("pass either manifest (an object) or yaml (text)");
    const given = body.yaml === undefined ? { manifest: body.manifest as JsonObject } : { yaml: body.yaml };
    const entry = await manifests(call.app, call.signal).publish(given, call.principal);
    await decided(call, "manifest_published", `version ${entry.version}, draft`, entry.tool);
    return entry;
  },
});

const oneVersion = z.strictObject({ tool: toolSchema, version: boundedText(256).optional() });

export const approveManifest = defineOperation({
  id: "approve_manifest",
  summary: "Approve a draft: the named version, or the newest",
  role: "admin",
  input: oneVersion,
  output: registryEntryShape,
  feature: manifestsFeature,
  errors: { not_found: "no registry folder, or no such manifest", conflict: "no draft exists" },
  async run(call, { tool, version }) {
    const { four_eyes } = call.app.core.rules().policy.approvals;
    const entry = await manifests(call.app).approve(tool, version, call.principal, four_eyes);
    await decided(call, "manifest_approved", `version ${entry.version}`, entry.tool);
    return entry;
  },
});

export const deprecateManifest = defineOperation({
  id: "deprecate_manifest",
  summary: "Deprecate an approved manifest",
  role: "admin",
  input: oneVersion,
  output: registryEntryShape,
  feature: manifestsFeature,
  errors: { not_found: "no registry folder, or no such manifest", conflict: "no approved version exists" },
  async run(call, { tool, version }) {
    const entry = await manifests(call.app).deprecate(tool, version, call.principal);
    await decided(call, "manifest_deprecated", `version ${entry.version}`, entry.tool);
    return entry;
  },
});

export const publishPolicy = defineOperation({
  id: "publish_policy",
  summary: "Publish a policy version as a draft; its own tests must pass",
  role: "operator",
  input: z.strictObject({ yaml: boundedText(SERVICE_LIMITS.body_bytes), note: noteSchema.optional() }),
  output: z.strictObject({
    version: z.string(),
    tests: z.strictObject({ passed: z.int(), failed: z.int() }),
    warnings: z.array(z.string()),
  }),
  feature: policiesFeature,
  errors: { not_found: "no registry folder", too_many: "too many simulations are under way" },
  async run({ app, principal, signal }, { yaml, note }) {
    const published = await policies(app, signal).publish(yaml, note ?? null, principal);
    return { ...published, warnings: await warningsOf(app, yaml, signal) };
  },
});

export const activatePolicy = defineOperation({
  id: "activate_policy",
  summary: "Activate a policy version",
  role: "admin",
  input: z.strictObject({
    version: z.string().regex(/^[1-9]\d{0,8}$/, "must be a policy version such as 3"),
  }),
  output: z.union([policyShape, waitingPolicy]),
  feature: policiesFeature,
  errors: {
    not_found: "no registry folder, or no such version",
    conflict: "it is active already, does not load, or one of its claims has a counterexample",
    too_many: "too many simulations are under way",
  },
  async run(call, { version }) {
    const { app, principal, at_the_data, signal } = call;
    const { entry, first } = await policies(app, signal).activate(version, principal, {
      four_eyes: app.core.rules().policy.approvals.four_eyes,
      second_admin: app.settings.registry.loosening === "second_admin",
      at_the_data: at_the_data === true,
      stillMay(giver) {
        const now = app.today(giver);
        return now !== null && hasRole(now, "admin") && tenantBinding(now) === null;
      },
    });
    if ("waiting_for" in entry) {
      app.log.info("a looser policy needs the approval of another admin", { version, by: principal.name });
      return entry;
    }
    const both = first === null ? "" : `; with ${first}`;
    await decided(call, "policy_activated", `version ${entry.version}, ${entry.hash}${both}`);
    return entry;
  },
});
