/** The active content of the registry: its manifests, and the activated policy version. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readTextFile } from "../config/files.ts";

interface RegistryFolders {
  manifests: string | null;
  policies: string | null;
}

export const ACTIVE_FILE = "active";

/** Versions in order of activation. The last one is active. */
export async function readActive(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, ACTIVE_FILE), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  return text.split("\n").filter((line) => line !== "");
}

export function registryRules({ manifests, policies }: RegistryFolders) {
  return {
    manifestsPath: manifests,
    /** Changes with every activation. */
    activeFile: policies === null ? null : join(policies, ACTIVE_FILE),
    async activePolicy(): Promise<{ file: string; text: string } | null> {
      const version = policies === null ? undefined : (await readActive(policies)).at(-1);
      if (policies === null || version === undefined) return null;
      const file = join(policies, `${version}.yaml`);
      return { file, text: await readTextFile(file) };
    },
  };
}
