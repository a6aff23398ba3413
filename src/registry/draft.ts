/** A manifest for the registry: one valid entry, as a list of one, with its registry lifecycle. */
import { parseDocument, stringify } from "yaml";
import { invalidError, ProblemsError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../kernel/json/json.ts";
import { readManifests } from "../rules/manifest/load.ts";
import type { ManifestLifecycle, ToolManifest } from "../rules/manifest/types.ts";
import { parseYaml } from "../rules/yaml.ts";

export interface ManifestDraft {
  manifest: ToolManifest;
  yaml: string;
}

/** Builds a draft, and ignores the lifecycle in the manifest: publishing does not approve. */
export function buildManifestDraft(given: { manifest: JsonObject } | { yaml: string }): ManifestDraft {
  const text = "yaml" in given ? asList(given.yaml) : stringify([given.manifest]);
  return { manifest: onlyEntry(text), yaml: withLifecycle(text, "draft") };
}

/** Adds the dash to a single entry. Leaves unparsable text as it is, for the manifest parser to reject. */
function asList(text: string): string {
  try {
    const { value } = parseYaml(text, "manifest");
    return isJsonObject(value) ? stringify([value]) : text;
  } catch (error) {
    if (error instanceof ProblemsError) return text;
    throw error;
  }
}

function onlyEntry(text: string): ToolManifest {
  let all: readonly ToolManifest[];
  try {
    all = readManifests([{ file: "manifest", text }]).all;
  } catch (error) {
    if (error instanceof ProblemsError) throw invalidError(error.problems.join("; "));
    throw error;
  }
  if (all.length !== 1) throw invalidError(`manifest: one entry is published at a time, not ${all.length}`);
  return all[0]!;
}

/** Sets the lifecycle in the YAML text, and keeps the author's comments and order. */
export function withLifecycle(text: string, lifecycle: ManifestLifecycle): string {
  const document = parseDocument(text, { uniqueKeys: false });
  document.setIn([0, "lifecycle"], lifecycle);
  return document.toString();
}
