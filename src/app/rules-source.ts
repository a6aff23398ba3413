/**
 * The rules in force and where they come from. They are read whole and swapped whole: what does not load
 * changes nothing, and no decision ever sees new manifests with an old policy.
 */
import { existsSync } from "node:fs";
import { pathStamp, readTextFile } from "../config/files.ts";
import { loadManifests, manifestFiles } from "../config/manifest-source.ts";
import { isRemote } from "../config/row.ts";
import type { Settings } from "../config/settings.ts";
import type { Egress } from "../egress/egress.ts";
import type { Rules } from "../engine/core.ts";
import { ProblemsError } from "../kernel/errors.ts";
import { type LoadedManifests, readManifests } from "../model/manifest/load.ts";
import { manifestSet } from "../model/manifest/set.ts";
import { compilePolicy, EMPTY_POLICY, type Policy } from "../model/policy/compile.ts";
import { loadPolicy } from "../model/policy/load.ts";
import type { Logger } from "../telemetry/log.ts";

export interface LoadedRules extends Rules {
  manifests: LoadedManifests;
}

export interface RulesSource {
  current(): LoadedRules;
  /** Reads everything again; throws and keeps the old rules when anything does not load. */
  reload(): Promise<LoadedRules>;
  /** Reads again when a file changed since the last reading. */
  reloadIfChanged(): Promise<boolean>;
}

/** What the registry adds: published manifests, and the policy version that was activated. */
export interface RegistryRules {
  manifestsPath: string | null;
  activeFile: string | null;
  activePolicy(): Promise<{ file: string; text: string } | null>;
}

export interface RulesDeps {
  /** Without a data folder no copy of remote manifests is kept or used. */
  settings: Pick<Settings, "manifests" | "policy"> & { data: string | null };
  egress: Egress;
  log: Logger;
  registry: RegistryRules;
}

export async function openRules(deps: RulesDeps): Promise<RulesSource> {
  let stamp = await stampOf(deps);
  let rules = await read(deps);
  for (const warning of rules.manifests.warnings) deps.log.warn(warning);
  const reload = async () => {
    const seen = await stampOf(deps);
    const next = await read(deps);
    stamp = seen;
    rules = next;
    return rules;
  };
  return {
    current: () => rules,
    reload,
    async reloadIfChanged() {
      const seen = await stampOf(deps);
      if (seen === stamp) return false;
      // Remembered before reading: a file that does not load is complained of once, not every two seconds.
      stamp = seen;
      await reload();
      return true;
    },
  };
}

async function read({ settings, egress, log, registry }: RulesDeps): Promise<LoadedRules> {
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
  const warn = (message: string, fields?: Record<string, unknown>) => log.warn(message, fields);
  const source = { path: settings.manifests, egress, data: settings.data, warn };
  const manifests = await collect(withRegistry(loadManifests(source), settings.manifests, registry));
  const policy = await collect(readPolicy(settings.policy, registry));
  if (manifests === undefined || policy === undefined) throw new ProblemsError(problems);
  return { manifests, policy };
}

/** Configured and published manifests together, as if they lay in one folder. */
async function withRegistry(
  base: Promise<LoadedManifests>,
  path: string | null,
  registry: RegistryRules,
): Promise<LoadedManifests> {
  const folder = registry.manifestsPath;
  if (folder === null || folder === path || !existsSync(folder)) return base;
  const { files, problems } = await manifestFiles(folder);
  if (problems.length > 0) throw new ProblemsError(problems);
  if (path === null || isRemote(path)) return mergeManifests(await base, readManifests(files));
  const configured = await manifestFiles(path);
  await base;
  return readManifests([...configured.files, ...files]);
}

function mergeManifests(a: LoadedManifests, b: LoadedManifests): LoadedManifests {
  return {
    ...manifestSet([...a.all, ...b.all]),
    warnings: [...a.warnings, ...b.warnings],
    sourceOf: (manifest) => a.sourceOf(manifest) ?? b.sourceOf(manifest),
  };
}

async function readPolicy(path: string | null, registry: RegistryRules): Promise<Policy> {
  const active = await registry.activePolicy();
  if (active !== null) return compilePolicy(loadPolicy(active.text, active.file));
  if (path === null) return EMPTY_POLICY;
  return compilePolicy(loadPolicy(await readTextFile(path), path));
}

async function stampOf({ settings, registry }: RulesDeps): Promise<string> {
  const paths = [settings.manifests, settings.policy, registry.manifestsPath, registry.activeFile].filter(
    (path): path is string => path !== null && !isRemote(path),
  );
  return (await Promise.all(paths.map(pathStamp))).join(" ");
}
