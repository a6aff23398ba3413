/** What the registry puts in force: the policy version that was activated, before the configured file. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readTextFile } from "../config/files.ts";

export interface RegistryFolders {
  manifests: string | null;
  policies: string | null;
}

export const ACTIVE_FILE = "active";

export function registryRules(folders: RegistryFolders) {
  return {
    manifestsPath: folders.manifests,
    async activePolicy(): Promise<{ file: string; text: string } | null> {
      if (folders.policies === null) return null;
      const version = await readFile(join(folders.policies, ACTIVE_FILE), "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return null;
        throw error;
      });
      if (version === null) return null;
      const file = join(folders.policies, `${version.trim()}.yaml`);
      return { file, text: await readTextFile(file) };
    },
  };
}
