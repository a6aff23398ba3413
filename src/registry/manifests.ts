/**
 * The manifest registry: drafts become approved, approved ones become deprecated; nothing is deleted.
 * One file a tool and version, so that a folder under version control reads like a history.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseDocument, stringify } from "yaml";
import { withEditLock } from "../auth/edit-lock.ts";
import type { Env } from "../kernel/env.ts";
import { conflict, forbidden, invalid, notFound, ProblemsError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { readManifests } from "../model/manifest/load.ts";
import type { Lifecycle, Manifest } from "../model/manifest/types.ts";
import { compareVersions } from "../model/manifest/version.ts";
import type { Principal } from "../model/roles.ts";
import { parseYaml } from "../model/yaml.ts";
import { numberOf, readRegistryFile, textOf, writeRegistryFile } from "./file.ts";

export interface RegistryEntry {
  tool: string;
  version: string;
  lifecycle: Lifecycle;
  created_by: string | null;
  created_ms: number | null;
  approved_by: string | null;
}

interface Stored extends RegistryEntry {
  path: string;
  meta: JsonObject;
  yaml: string;
}

export class ManifestRegistry {
  private readonly folder: string;
  private readonly env: Env;

  constructor(folder: string, env: Env) {
    this.folder = folder;
    this.env = env;
  }

  async list(): Promise<RegistryEntry[]> {
    return (await this.stored()).map(({ path: _path, meta: _meta, yaml: _yaml, ...entry }) => entry);
  }

  /** Takes a draft. What it says of its own lifecycle does not count: nobody approves by publishing. */
  async publish(given: { manifest: JsonObject } | { yaml: string }, by: Principal): Promise<RegistryEntry> {
    const text = "yaml" in given ? asList(given.yaml) : stringify([given.manifest]);
    const manifest = onlyEntry(text);
    return this.locked(async () => {
      const known = (await this.stored()).find(
        (entry) => entry.tool === manifest.tool && entry.version === manifest.version,
      );
      if (known !== undefined) {
        throw conflict(
          `${manifest.tool} version ${manifest.version} is already in the registry; publish it under a new version`,
        );
      }
      const meta = { created_by: by.name, created_ms: this.env.now() };
      await writeRegistryFile(this.pathOf(manifest), { meta, yaml: withLifecycle(text, "draft") });
      return { ...view(manifest, meta), lifecycle: "draft" };
    });
  }

  async approve(
    tool: string,
    version: string | undefined,
    by: Principal,
    four_eyes: boolean,
  ): Promise<RegistryEntry> {
    return this.move(tool, version, "draft", "approved", (entry) => {
      if (four_eyes && textOf(entry.meta, "created_by") === by.name)
        throw forbidden("you cannot decide your own request");
      return { ...entry.meta, approved_by: by.name, approved_ms: this.env.now() };
    });
  }

  async deprecate(tool: string, version: string | undefined, by: Principal): Promise<RegistryEntry> {
    return this.move(tool, version, "approved", "deprecated", (entry) => ({
      ...entry.meta,
      deprecated_by: by.name,
      deprecated_ms: this.env.now(),
    }));
  }

  private async move(
    tool: string,
    version: string | undefined,
    from: Lifecycle,
    to: Lifecycle,
    change: (entry: Stored) => JsonObject,
  ): Promise<RegistryEntry> {
    return this.locked(async () => {
      const entries = (await this.stored()).filter(
        (entry) => entry.tool === tool && (version === undefined || entry.version === version),
      );
      if (entries.length === 0)
        throw notFound(`the registry has no ${tool}${version === undefined ? "" : ` version ${version}`}`);
      const candidates = entries.filter((entry) => entry.lifecycle === from);
      const entry = candidates.sort((a, b) => compareVersions(b.version, a.version))[0];
      if (entry === undefined)
        throw conflict(`${tool} has no ${from} version to make ${to} (it is ${entries[0]!.lifecycle})`);
      const meta = change(entry);
      await writeRegistryFile(entry.path, { meta, yaml: withLifecycle(entry.yaml, to) });
      return { ...view(entry, meta), lifecycle: to };
    });
  }

  private async stored(): Promise<Stored[]> {
    const names = await readdir(this.folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const found: Stored[] = [];
    for (const name of names.filter((name) => /\.ya?ml$/.test(name)).sort()) {
      const path = join(this.folder, name);
      const { meta, yaml } = await readRegistryFile(path);
      for (const manifest of readManifests([{ file: path, text: yaml }]).all) {
        found.push({ ...view(manifest, meta), path, meta, yaml });
      }
    }
    return found;
  }

  /** A tool's name may hold characters that a file name may not; the hash keeps two of them apart. */
  private pathOf({ tool, version }: Pick<Manifest, "tool" | "version">): string {
    const safe = `${tool}@${version}`.replaceAll(/[^\w.@-]/g, "_").slice(0, 120);
    return join(this.folder, `${safe}-${sha256Hex(`${tool}@${version}`).slice(0, 8)}.yaml`);
  }

  private async locked<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(this.folder, { recursive: true });
    return withEditLock(join(this.folder, "registry"), this.env, work);
  }
}

function view(manifest: Pick<Manifest, "tool" | "version" | "lifecycle">, meta: JsonObject): RegistryEntry {
  const { tool, version, lifecycle } = manifest;
  return {
    ...{ tool, version, lifecycle },
    created_by: textOf(meta, "created_by"),
    created_ms: numberOf(meta, "created_ms"),
    approved_by: textOf(meta, "approved_by"),
  };
}

/** One entry may come without its dash; what cannot be read stays as it is, and is refused by its reader. */
function asList(text: string): string {
  try {
    const { value } = parseYaml(text, "manifest");
    return isJsonObject(value) ? stringify([value]) : text;
  } catch (error) {
    if (error instanceof ProblemsError) return text;
    throw error;
  }
}

function onlyEntry(text: string): Manifest {
  let all: readonly Manifest[];
  try {
    all = readManifests([{ file: "manifest", text }]).all;
  } catch (error) {
    if (error instanceof ProblemsError) throw invalid(error.problems.join("; "));
    throw error;
  }
  if (all.length !== 1) throw invalid(`manifest: one entry is published at a time, not ${all.length}`);
  return all[0]!;
}

/** Sets the lifecycle in the YAML as written, keeping the author's comments and order. */
function withLifecycle(text: string, lifecycle: Lifecycle): string {
  const document = parseDocument(text);
  document.setIn([0, "lifecycle"], lifecycle);
  return document.toString();
}
