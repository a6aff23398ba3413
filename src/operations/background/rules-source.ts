/**
 * Loads the active rules. Manifests and policy are replaced together, so no decision combines new manifests with an old
 * policy. Rules that fail to load change nothing.
 */
import { existsSync } from "node:fs";
import { pathStamp, readTextFile } from "../../config/files.ts";
import { loadManifests, manifestFiles } from "../../config/manifest-source.ts";
import { isRemote } from "../../config/setting-row.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import type { EgressClient } from "../../egress/egress.ts";
import type { ActiveRules } from "../../govern/core.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { requirementCycleProblems } from "../../rules/manifest/cross-check.ts";
import type { ManifestFile } from "../../rules/manifest/entry.ts";
import { type LoadedManifests, loadedManifests, readManifests } from "../../rules/manifest/load.ts";
import { manifestSet } from "../../rules/manifest/set.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { asksSignatures } from "../../rules/policy/checks/approvals.ts";
import { type CompiledPolicy, compilePolicy, EMPTY_POLICY } from "../../rules/policy/compile.ts";
import { loadPolicy } from "../../rules/policy/load.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import { compileInTurns, parseOwn } from "../worker/parse.ts";

export interface LoadedRules extends ActiveRules {
  manifests: LoadedManifests;
  /** The policy as written by its author; null if there is none. */
  policy_text: string | null;
}

/** Parser of the rules: in place at startup, in threads while the process serves requests. */
interface RulesReader {
  policy(text: string, file: string): Promise<CompiledPolicy>;
  manifests(files: readonly ManifestFile[]): Promise<LoadedManifests>;
}

const AT_ONCE: RulesReader = {
  policy: async (text, file) => compilePolicy(loadPolicy(text, file)),
  manifests: async (files) => readManifests(files),
};

/** Parses large files in threads and compiles in turns. */
const IN_THREADS: RulesReader = {
  policy: async (text, file) => compileInTurns(await parseOwn({ read: "policy", text, file })),
  manifests: async (files) => loadedManifests(await parseOwn({ read: "manifests", files })),
};

export interface RulesSource {
  current(): LoadedRules;
  /** Reads everything again. If anything fails to load, throws and keeps the old rules. */
  reload(): Promise<LoadedRules>;
  /** Reloads if a file has changed since the last load. */
  reloadIfChanged(): Promise<boolean>;
  /** Throws if the manifests would not load with this text in the registry's file. */
  fits(file: string, text: string): Promise<void>;
}

/** Rules from the registry: published manifests and the activated policy version. */
export interface RegistryRules {
  manifestsPath: string | null;
  activeFile: string | null;
  activePolicy(): Promise<{ file: string; text: string } | null>;
}

interface RulesParts {
  /** Without a data directory, remote manifests have no local copy. */
  settings: Pick<LoadedSettings, "manifests" | "policy" | "ledger_origin"> & { data: string | null };
  egress: EgressClient;
  log: ServiceLogger;
  registry: RegistryRules;
}

export async function openRules(parts: RulesParts): Promise<RulesSource> {
  let stamp = await stampOf(parts);
  let rules = await read(parts, AT_ONCE);
  for (const warning of rules.manifests.warnings) parts.log.warn(warning);
  const readAgain = async () => {
    const seen = await stampOf(parts);
    const next = await read(parts, IN_THREADS);
    stamp = seen;
    rules = next;
    return rules;
  };
  // Serialize reloads, so that older content never replaces newer.
  let turn: Promise<unknown> = Promise.resolve();
  const reload = () => {
    const mine = turn.then(readAgain, readAgain);
    turn = mine.catch(() => undefined);
    return mine;
  };
  return {
    current: () => rules,
    reload,
    async reloadIfChanged() {
      const seen = await stampOf(parts);
      if (seen === stamp) return false;
      // Set before reading, so that a broken file is reported once and not every two seconds.
      stamp = seen;
      await reload();
      return true;
    },
    fits: async (file, text) => void (await readAllManifests(parts, IN_THREADS, { file, text })),
  };
}

async function read(parts: RulesParts, reader: RulesReader): Promise<LoadedRules> {
  const problems: string[] = [];
  const collect = async <T>(work: Promise<T>): Promise<T | undefined> => {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ProblemsError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const manifests = await collect(readAllManifests(parts, reader));
  const policy = await collect(readPolicy(parts, reader));
  if (manifests === undefined || policy === undefined) throw new ProblemsError(problems);
  return { manifests, ...policy };
}

/** Loads configured and published manifests as one directory, optionally with one file replaced. */
async function readAllManifests(
  { settings, egress, log, registry }: RulesParts,
  reader: RulesReader,
  change?: ManifestFile,
): Promise<LoadedManifests> {
  const { manifests: path, data } = settings;
  const folder = registry.manifestsPath;
  const warn = (message: string, fields?: Record<string, unknown>) => log.warn(message, fields);
  const configured = () => loadManifests({ path, egress, data, warn, read: reader.manifests });
  if (folder === null || (change === undefined && (folder === path || !existsSync(folder))))
    return configured();
  const published = await publishedFiles(folder, change);
  if (folder === path) return reader.manifests(published);
  if (path === null || isRemote(path))
    return mergeManifests(await configured(), await reader.manifests(published));
  const { files, problems } = await manifestFiles(path);
  return problems.length > 0 ? configured() : reader.manifests([...files, ...published]);
}

async function publishedFiles(folder: string, change: ManifestFile | undefined): Promise<ManifestFile[]> {
  const { files, problems } = existsSync(folder) ? await manifestFiles(folder) : { files: [], problems: [] };
  if (problems.length > 0) throw new ProblemsError(problems);
  return change === undefined ? files : [...files.filter(({ file }) => file !== change.file), change];
}

function mergeManifests(a: LoadedManifests, b: LoadedManifests): LoadedManifests {
  const set = manifestSet([...a.all, ...b.all]);
  const sourceOf = (manifest: ToolManifest) => a.sourceOf(manifest) ?? b.sourceOf(manifest);
  const rings = requirementCycleProblems(set, (manifest) => {
    const { file, line } = sourceOf(manifest)!;
    return `${file}:${line}: tool ${manifest.tool}: `;
  });
  if (rings.length > 0) throw new ProblemsError(rings);
  return { ...set, warnings: [...a.warnings, ...b.warnings], sourceOf };
}

async function readPolicy(
  { settings, registry }: RulesParts,
  reader: RulesReader,
): Promise<Pick<LoadedRules, "policy" | "policy_text">> {
  const path = settings.policy;
  const found =
    (await registry.activePolicy()) ??
    (path === null ? null : { file: path, text: await readTextFile(path) });
  if (found === null) return { policy: EMPTY_POLICY, policy_text: null };
  const policy = await reader.policy(found.text, found.file);
  if (settings.ledger_origin === null && asksSignatures(policy.doc))
    throw new ProblemsError([
      `${found.file}: signed approvals need ledger_origin (SVC_LEDGER_ORIGIN), the name of the ledger that people sign for`,
    ]);
  return { policy, policy_text: found.text };
}

async function stampOf({ settings, registry }: RulesParts): Promise<string> {
  const paths = [settings.manifests, settings.policy, registry.manifestsPath, registry.activeFile].filter(
    (path): path is string => path !== null && !isRemote(path),
  );
  return (await Promise.all(paths.map(pathStamp))).join(" ");
}
