/**
 * The manifest registry: drafts become approved, approved ones become deprecated, and nothing is deleted. Each tool and
 * version has its own file, so that a directory under version control has a readable history.
 */

import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { withEditLock } from "../auth/edit-lock.ts";
import type { CallerPrincipal } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { conflictError, forbiddenError, notFoundError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { JsonObject } from "../kernel/json/json.ts";
import { MANIFEST_LIFECYCLES } from "../rules/manifest/schema.ts";
import type { ManifestLifecycle, ToolManifest } from "../rules/manifest/types.ts";
import { compareVersions } from "../rules/manifest/version.ts";
import { nullableSchema } from "../rules/nullable-schema.ts";
import type { ManifestDraft } from "./draft.ts";
import { metaNumber, metaText, readRegistryFile, writeRegistryFile, yamlDigest } from "./registry-file.ts";

export const registryEntryShape = z.strictObject({
  tool: z.string(),
  version: z.string(),
  lifecycle: z.enum(MANIFEST_LIFECYCLES),
  created_by: nullableSchema(z.string()),
  created_ms: nullableSchema(z.int()),
  approved_by: nullableSchema(z.string()),
});

export type RegistryEntry = z.output<typeof registryEntryShape>;

interface Stored extends RegistryEntry {
  path: string;
  meta: JsonObject;
  yaml: string;
}

/** Validation of manifest texts. Each method rejects with an error that explains the problem. */
interface ManifestReader {
  draft(given: { manifest: JsonObject } | { yaml: string }): Promise<ManifestDraft>;
  entries(
    file: string,
    yaml: string,
  ): Promise<readonly Pick<ToolManifest, "tool" | "version" | "lifecycle">[]>;
  withLifecycle(yaml: string, to: ManifestLifecycle): Promise<string>;
  /** Rejects content that would conflict with the other active manifests. */
  fits(file: string, yaml: string): Promise<void>;
}

export class ManifestRegistry {
  private readonly folder: string;
  private readonly env: RuntimeEnv;
  private readonly reader: ManifestReader;

  constructor(folder: string, env: RuntimeEnv, reader: ManifestReader) {
    this.folder = folder;
    this.env = env;
    this.reader = reader;
  }

  async list(): Promise<RegistryEntry[]> {
    return (await this.stored()).map(({ path: _path, meta: _meta, yaml: _yaml, ...entry }) => entry);
  }

  async publish(
    given: { manifest: JsonObject } | { yaml: string },
    by: CallerPrincipal,
  ): Promise<RegistryEntry> {
    const { manifest, yaml } = await this.reader.draft(given);
    return this.locked(async () => {
      const known = (await this.stored()).find(
        (entry) => entry.tool === manifest.tool && entry.version === manifest.version,
      );
      if (known !== undefined) {
        throw conflictError(
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
    by: CallerPrincipal,
    four_eyes: boolean,
  ): Promise<RegistryEntry> {
    return this.move(tool, version, "draft", "approved", (entry) => {
      if (four_eyes && metaText(entry.meta, "created_by") === by.name)
        throw forbiddenError("you cannot decide your own request", "own_request");
      return { ...entry.meta, approved_by: by.name, approved_ms: this.env.now() };
    });
  }

  async deprecate(tool: string, version: string | undefined, by: CallerPrincipal): Promise<RegistryEntry> {
    return this.move(tool, version, "approved", "deprecated", (entry) => ({
      ...entry.meta,
      deprecated_by: by.name,
      deprecated_ms: this.env.now(),
    }));
  }

  private async move(
    tool: string,
    version: string | undefined,
    from: ManifestLifecycle,
    to: ManifestLifecycle,
    change: (entry: Stored) => JsonObject,
  ): Promise<RegistryEntry> {
    return this.locked(async () => {
      const entries = (await this.stored()).filter(
        (entry) => entry.tool === tool && (version === undefined || entry.version === version),
      );
      if (entries.length === 0)
        throw notFoundError(
          `the registry has no ${tool}${version === undefined ? "" : ` version ${version}`}`,
          "unknown_version",
        );
      const candidates = entries.filter((entry) => entry.lifecycle === from);
      const entry = candidates.sort((a, b) => compareVersions(b.version, a.version))[0];
      if (entry === undefined)
        throw conflictError(
          "version_state",
          `${tool} has no ${from} version to make ${to} (it is ${entries[0]!.lifecycle})`,
        );
      const meta = change(entry);
      const yaml = await this.reader.withLifecycle(entry.yaml, to);
      return this.write(entry.path, { ...entry, lifecycle: to }, meta, yaml);
    });
  }

  /** Stores the entry in the file's first line, so that a listing need not read the rest. */
  private async write(
    path: string,
    { tool, version, lifecycle }: Pick<ToolManifest, "tool" | "version" | "lifecycle">,
    about: JsonObject,
    yaml: string,
  ): Promise<RegistryEntry> {
    await this.reader.fits(path, yaml);
    const meta = { ...about, tool, version, lifecycle, digest: yamlDigest(yaml) };
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

  /** Tool names can contain characters that file names cannot. The hash keeps the names distinct. */
  private pathOf({ tool, version }: Pick<ToolManifest, "tool" | "version">): string {
    const safe = `${tool}@${version}`.replaceAll(/[^\w.@-]/g, "_").slice(0, 120);
    return join(this.folder, `${safe}-${sha256Hex(`${tool}@${version}`).slice(0, 8)}.yaml`);
  }

  private async locked<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(this.folder, { recursive: true });
    return withEditLock(join(this.folder, "registry"), this.env, work);
  }
}

/** Returns the entry from the first line, or null for a file written or edited by hand. */
function entryOf(
  meta: JsonObject,
  yaml: string,
): Pick<ToolManifest, "tool" | "version" | "lifecycle"> | null {
  const [tool, version] = [metaText(meta, "tool"), metaText(meta, "version")];
  const lifecycle = MANIFEST_LIFECYCLES.find((one) => one === meta["lifecycle"]);
  if (tool === null || version === null || lifecycle === undefined) return null;
  return meta["digest"] === yamlDigest(yaml) ? { tool, version, lifecycle } : null;
}

function view(
  manifest: Pick<ToolManifest, "tool" | "version" | "lifecycle">,
  meta: JsonObject,
): RegistryEntry {
  const { tool, version, lifecycle } = manifest;
  return {
    ...{ tool, version, lifecycle },
    created_by: metaText(meta, "created_by"),
    created_ms: metaNumber(meta, "created_ms"),
    approved_by: metaText(meta, "approved_by"),
  };
}
