/**
 * The manifest registry: drafts become approved, approved ones become deprecated; nothing is deleted.
 * One file a tool and version, so that a folder under version control reads like a history.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { withEditLock } from "../auth/edit-lock.ts";
import type { Env } from "../kernel/env.ts";
import { conflict, forbidden, notFound } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { JsonObject } from "../kernel/json.ts";
import { LIFECYCLES, type Lifecycle, type Manifest } from "../model/manifest/types.ts";
import { compareVersions } from "../model/manifest/version.ts";
import type { Principal } from "../model/roles.ts";
import type { ManifestDraft } from "./draft.ts";
import { digestOf, metaNumber, metaText, readRegistryFile, writeRegistryFile } from "./file.ts";

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

/** How texts are read, wherever that is done. Each refuses with an error that says what is wrong. */
interface ManifestReader {
  draft(given: { manifest: JsonObject } | { yaml: string }): Promise<ManifestDraft>;
  entries(file: string, yaml: string): Promise<readonly Pick<Manifest, "tool" | "version" | "lifecycle">[]>;
  withLifecycle(yaml: string, to: Lifecycle): Promise<string>;
  /** Refuses what could not be in force beside all the other manifests once the file says this. */
  fits(file: string, yaml: string): Promise<void>;
}

export class ManifestRegistry {
  private readonly folder: string;
  private readonly env: Env;
  private readonly reader: ManifestReader;

  constructor(folder: string, env: Env, reader: ManifestReader) {
    this.folder = folder;
    this.env = env;
    this.reader = reader;
  }

  async list(): Promise<RegistryEntry[]> {
    return (await this.stored()).map(({ path: _path, meta: _meta, yaml: _yaml, ...entry }) => entry);
  }

  async publish(given: { manifest: JsonObject } | { yaml: string }, by: Principal): Promise<RegistryEntry> {
    const { manifest, yaml } = await this.reader.draft(given);
    return this.locked(async () => {
      const known = (await this.stored()).find(
        (entry) => entry.tool === manifest.tool && entry.version === manifest.version,
      );
      if (known !== undefined) {
        throw conflict(
          "version_exists",
          `${manifest.tool} version ${manifest.version} is already in the registry; publish it under a new version`,
        );
      }
      const meta = { created_by: by.name, created_ms: this.env.now() };
      return this.write(this.pathOf(manifest), { ...manifest, lifecycle: "draft" }, meta, yaml);
    });
  }

  async approve(
    tool: string,
    version: string | undefined,
    by: Principal,
    four_eyes: boolean,
  ): Promise<RegistryEntry> {
    return this.move(tool, version, "draft", "approved", (entry) => {
      if (four_eyes && metaText(entry.meta, "created_by") === by.name)
        throw forbidden("you cannot decide your own request", "own_request");
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
        throw notFound(
          `the registry has no ${tool}${version === undefined ? "" : ` version ${version}`}`,
          "unknown_version",
        );
      const candidates = entries.filter((entry) => entry.lifecycle === from);
      const entry = candidates.sort((a, b) => compareVersions(b.version, a.version))[0];
      if (entry === undefined)
        throw conflict(
          "version_state",
          `${tool} has no ${from} version to make ${to} (it is ${entries[0]!.lifecycle})`,
        );
      const meta = change(entry);
      const yaml = await this.reader.withLifecycle(entry.yaml, to);
      return this.write(entry.path, { ...entry, lifecycle: to }, meta, yaml);
    });
  }

  /** What the file says is kept in its first line, so that a listing need not read the rest of it. */
  private async write(
    path: string,
    { tool, version, lifecycle }: Pick<Manifest, "tool" | "version" | "lifecycle">,
    about: JsonObject,
    yaml: string,
  ): Promise<RegistryEntry> {
    await this.reader.fits(path, yaml);
    const meta = { ...about, tool, version, lifecycle, digest: digestOf(yaml) };
    await writeRegistryFile(path, { meta, yaml });
    return view({ tool, version, lifecycle }, meta);
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
      const known = entryOf(meta, yaml);
      const entries = known === null ? await this.reader.entries(path, yaml) : [known];
      for (const entry of entries) found.push({ ...view(entry, meta), path, meta, yaml });
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

/** The entry as the first line has it; null where the file was written or edited by hand. */
function entryOf(meta: JsonObject, yaml: string): Pick<Manifest, "tool" | "version" | "lifecycle"> | null {
  const [tool, version] = [metaText(meta, "tool"), metaText(meta, "version")];
  const lifecycle = LIFECYCLES.find((one) => one === meta["lifecycle"]);
  if (tool === null || version === null || lifecycle === undefined) return null;
  return meta["digest"] === digestOf(yaml) ? { tool, version, lifecycle } : null;
}

function view(manifest: Pick<Manifest, "tool" | "version" | "lifecycle">, meta: JsonObject): RegistryEntry {
  const { tool, version, lifecycle } = manifest;
  return {
    ...{ tool, version, lifecycle },
    created_by: metaText(meta, "created_by"),
    created_ms: metaNumber(meta, "created_ms"),
    approved_by: metaText(meta, "approved_by"),
  };
}
