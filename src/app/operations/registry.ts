/** The registry: drafts of manifests and policies, and what people decide about them. */
import * as z from "zod";
import { conflict, invalid, notFound, ProblemsError } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { Lru } from "../../kernel/lru.ts";
import type { LedgerEvent } from "../../ledger/events.ts";
import { LIFECYCLES } from "../../model/manifest/types.ts";
import { boundTo, hasRole } from "../../model/roles.ts";
import { ManifestRegistry } from "../../registry/manifests.ts";
import { PolicyRegistry } from "../../registry/policies.ts";
import { type App, announce } from "../app.ts";
import { type Caller, operation } from "../door/operation.ts";
import { readOwn, readSent } from "../sandbox/reader.ts";
import { refuse } from "./reload.ts";
import { noFields, note, nullable, text, tool } from "./schemas.ts";
import { checkPolicyText, comparePolicies, proveClaims, warningsOf } from "./simulate/jobs.ts";

const NO_MANIFESTS = "no manifest registry folder is configured on this server";
const NO_POLICIES = "no policy registry folder is configured on this server";
const manifestsFeature = ({ settings }: App) => (settings.registry.manifests === null ? NO_MANIFESTS : null);
/** A server with no registry at all says the same on every one of its routes. */
const policiesFeature = (app: App) =>
  app.settings.registry.policies === null ? (manifestsFeature(app) ?? NO_POLICIES) : null;

/** Drafts are read beside the work of this process; so is what lies in the folder, where it is much. */
function manifests({ settings, core, rules }: App, signal?: AbortSignal): ManifestRegistry {
  return new ManifestRegistry(settings.registry.manifests!, core.env, {
    draft: (given) => readSent({ read: "draft", given }, signal),
    withLifecycle: (yaml, to) => readOwn({ read: "moved", yaml, to }),
    async entries(file, text) {
      const { entries } = await readOwn({ read: "manifests", files: [{ file, text }] });
      return entries.map(({ manifest }) => manifest);
    },
    fits: (file, text) => rules.fits(file, text).catch(refused),
  });
}

function policies(app: App, signal?: AbortSignal): PolicyRegistry {
  return new PolicyRegistry(app.settings.registry.policies!, app.core.env, {
    async check(yaml) {
      const checked = await checkPolicyText(app, yaml, { diff: false, signal });
      return checked.ok ? checked : refused(new ProblemsError(checked.problems));
    },
    async hash(text, file) {
      const digest = sha256Hex(text);
      const known = hashes.get(digest);
      if (known !== undefined) return known;
      const { hash } = await readOwn({ read: "policy", text, file }).catch(refused);
      hashes.set(digest, hash);
      return hash;
    },
    async prove(text, file) {
      const results = await proveClaims(app, text, file, signal).catch(refused);
      const wrong = results.filter(({ result }) => result === "counterexample");
      if (wrong.length === 0) return;
      const told = wrong.map(
        ({ name, at_least, counterexample }) =>
          `claim ${JSON.stringify(name)}: expected at least ${at_least}, got ${counterexample!.got} for ${JSON.stringify(counterexample!.input)}`,
      );
      throw conflict(
        "claim_refuted",
        `${file} is not what it claims; mend the rules or the claim: ${told.join("; ")}`,
      );
    },
    async isLooser(before, yaml) {
      const was = before === null ? null : { text: before, file: "the version in force" };
      const diff = await comparePolicies(app, was, { text: yaml, file: "policy" }, signal).catch(refused);
      return diff.looser.length > 0 || !diff.complete;
    },
  });
}

/** Of versions that were put into the folder by hand: every listing would read them anew. */
const hashes = new Lru<string, string>(1_000);

/** What is wrong with a text is its sender's to mend. */
function refused(error: unknown): never {
  if (error instanceof ProblemsError) throw invalid(error.problems.join("; "));
  throw error;
}

const text_or_null = nullable(z.string());
const entryShape = z.strictObject({
  tool: z.string(),
  version: z.string(),
  lifecycle: z.enum(LIFECYCLES),
  created_by: text_or_null,
  created_ms: nullable(z.int()),
  approved_by: text_or_null,
});
export const policyShape = z.strictObject({
  version: z.string(),
  status: z.enum(["draft", "active", "retired"]),
  hash: z.string(),
  created_by: text_or_null,
  note: text_or_null,
});

export const waitingPolicy = policyShape.extend({ waiting_for: z.literal("another admin") });

/** What was decided goes on the ledger, and into force in this process at once. */
async function decided(
  { app, principal }: Caller,
  event: LedgerEvent,
  detail: string,
  at?: string,
): Promise<void> {
  const { core } = app;
  const record = await core.store.transact({
    run: (tx) => tx.append({ event, actor: principal.name, ts_ms: core.env.now(), detail, tool: at }),
  });
  announce(core.listeners, [record]);
  const { manifests, policy } = await app.rules.reload().catch(refuse);
  app.log.info("reloaded", { manifests: manifests.all.length, policy: policy.hash });
}

export const readRegistry = operation({
  id: "read_registry",
  summary: "What the registry holds",
  role: "operator",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({ manifests: z.array(entryShape), policies: z.array(policyShape) }),
  feature: manifestsFeature,
  errors: { not_found: "no registry folder" },
  async run({ app }) {
    return {
      manifests: await manifests(app).list(),
      policies: policiesFeature(app) === null ? await policies(app).list() : [],
    };
  },
});

/** The text of a policy version, for whoever may read the registry. */
export async function policyVersionText(app: App, version: string): Promise<string> {
  const off = policiesFeature(app);
  if (off !== null) throw notFound(off);
  return policies(app).text(version);
}

export const publishManifest = operation({
  id: "publish_manifest",
  summary: "Publish a manifest as a draft",
  role: "operator",
  input: z.strictObject({
    manifest: z.record(z.string(), z.unknown()).optional(),
    yaml: text(LIMITS.body_bytes).optional(),
  }),
  output: entryShape,
  feature: manifestsFeature,
  errors: {
    not_found: "no registry folder",
    conflict: "this version is there already",
    too_many: "too many simulations are under way",
  },
  async run(call, body) {
    if ((body.manifest === undefined) === (body.yaml === undefined))
      throw invalid("give either manifest (an object) or yaml (text)");
    const given = body.yaml === undefined ? { manifest: body.manifest as JsonObject } : { yaml: body.yaml };
    const entry = await manifests(call.app, call.signal).publish(given, call.principal);
    await decided(call, "manifest_published", `version ${entry.version}, draft`, entry.tool);
    return entry;
  },
});

const oneVersion = z.strictObject({ tool, version: text(256).optional() });

export const approveManifest = operation({
  id: "approve_manifest",
  summary: "Approve a draft; the newest one unless a version is named",
  role: "admin",
  input: oneVersion,
  output: entryShape,
  feature: manifestsFeature,
  errors: { not_found: "no registry folder, or no such manifest", conflict: "there is no draft" },
  async run(call, { tool, version }) {
    const { four_eyes } = call.app.core.rules().policy.approvals;
    const entry = await manifests(call.app).approve(tool, version, call.principal, four_eyes);
    await decided(call, "manifest_approved", `version ${entry.version}`, entry.tool);
    return entry;
  },
});

export const deprecateManifest = operation({
  id: "deprecate_manifest",
  summary: "Deprecate an approved manifest",
  role: "admin",
  input: oneVersion,
  output: entryShape,
  feature: manifestsFeature,
  errors: { not_found: "no registry folder, or no such manifest", conflict: "there is no approved version" },
  async run(call, { tool, version }) {
    const entry = await manifests(call.app).deprecate(tool, version, call.principal);
    await decided(call, "manifest_deprecated", `version ${entry.version}`, entry.tool);
    return entry;
  },
});

export const publishPolicy = operation({
  id: "publish_policy",
  summary: "Publish a policy version as a draft; its own tests must pass",
  role: "operator",
  input: z.strictObject({ yaml: text(LIMITS.body_bytes), note: note.optional() }),
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

export const activatePolicy = operation({
  id: "activate_policy",
  summary: "Put a policy version in force",
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
        return now !== null && hasRole(now, "admin") && boundTo(now) === null;
      },
    });
    if ("waiting_for" in entry) {
      app.log.info("a looser policy waits for another admin", { version, by: principal.name });
      return entry;
    }
    const both = first === null ? "" : `; with ${first}`;
    await decided(call, "policy_activated", `version ${entry.version}, ${entry.hash}${both}`);
    return entry;
  },
});
