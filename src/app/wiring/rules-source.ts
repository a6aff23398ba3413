/**
 * The rules in force and where they come from. They are read whole and swapped whole: what does not load
 * changes nothing, and no decision ever sees new manifests with an old policy.
 */
import { existsSync } from "node:fs";
import { pathStamp, readTextFile } from "../../config/files.ts";
import { loadManifests, manifestFiles } from "../../config/manifest-source.ts";
import { isRemote } from "../../config/row.ts";
import type { Settings } from "../../config/settings.ts";
import type { Egress } from "../../egress/egress.ts";
import type { Rules } from "../../engine/core.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { ringProblems } from "../../model/manifest/cross-check.ts";
import type { ManifestFile } from "../../model/manifest/entry.ts";
import { type LoadedManifests, loadedManifests, readManifests } from "../../model/manifest/load.ts";
import { manifestSet } from "../../model/manifest/set.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import { compilePolicy, EMPTY_POLICY, type Policy } from "../../model/policy/compile.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import type { Logger } from "../../telemetry/log.ts";
import { compileInTurns, readOwn } from "../sandbox/reader.ts";

export interface LoadedRules extends Rules {
  manifests: LoadedManifests;
  /** The policy as its author wrote it; null where there is none. */
  policy_text: string | null;
}

/** How texts become rules. At a start they are read at once; a process that serves reads them beside its work. */
interface RulesReader {
  policy(text: string, file: string): Promise<Policy>;
  manifests(files: readonly ManifestFile[]): Promise<LoadedManifests>;
}

const AT_ONCE: RulesReader = {
  policy: async (text, file) => compilePolicy(loadPolicy(text, file)),
  manifests: async (files) => readManifests(files),
};

/** In threads, where there is much to read; what is compiled here is compiled in turns. */
const BESIDE: RulesReader = {
  policy: async (text, file) => compileInTurns(await readOwn({ read: "policy", text, file })),
  manifests: async (files) => loadedManifests(await readOwn({ read: "manifests", files })),
};

export interface RulesSource {
  current(): LoadedRules;
  /** Reads everything again; throws and keeps the old rules when anything does not load. */
  reload(): Promise<LoadedRules>;
  /** Reads again when a file changed since the last reading. */
  reloadIfChanged(): Promise<boolean>;
  /** Throws where the manifests would not load if the registry's file said this. */
  fits(file: string, text: string): Promise<void>;
}

/** What the registry adds: published manifests, and the policy version that was activated. */
export interface RegistryRules {
  manifestsPath: string | null;
  activeFile: string | null;
  activePolicy(): Promise<{ file: string; text: string } | null>;
}

interface RulesParts {
  /** Without a data folder no copy of remote manifests is kept or used. */
  settings: Pick<Settings, "manifests" | "policy"> & { data: string | null };
  egress: Egress;
  log: Logger;
  registry: RegistryRules;
}

export async function openRules(parts: RulesParts): Promise<RulesSource> {
  let stamp = await stampOf(parts);
  let rules = await read(parts, AT_ONCE);
  for (const warning of rules.manifests.warnings) parts.log.warn(warning);
  const readAgain = async () => {
    const seen = await stampOf(parts);
    const next = await read(parts, BESIDE);
    stamp = seen;
    rules = next;
    return rules;
  };
  // One after the other: what was read first must never come into force last.
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
      // Remembered before reading: a file that does not load is complained of once, not every two seconds.
      stamp = seen;
      await reload();
      return true;
    },
    fits: async (file, text) => void (await readAllManifests(parts, BESIDE, { file, text })),
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

/** Configured and published manifests together, as if they lay in one folder; with one file as it is to be. */
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
  const sourceOf = (manifest: Manifest) => a.sourceOf(manifest) ?? b.sourceOf(manifest);
  const rings = ringProblems(set, (manifest) => {
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
  return { policy: await reader.policy(found.text, found.file), policy_text: found.text };
}

async function stampOf({ settings, registry }: RulesParts): Promise<string> {
  const paths = [settings.manifests, settings.policy, registry.manifestsPath, registry.activeFile].filter(
    (path): path is string => path !== null && !isRemote(path),
  );
  return (await Promise.all(paths.map(pathStamp))).join(" ");
}
