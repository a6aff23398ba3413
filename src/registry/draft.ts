/** A manifest on its way into the registry: one valid entry, as a list of one, with the lifecycle it is given. */
import { parseDocument, stringify } from "yaml";
import { invalid, ProblemsError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { readManifests } from "../model/manifest/load.ts";
import type { Lifecycle, Manifest } from "../model/manifest/types.ts";
import { parseYaml } from "../model/yaml.ts";

export interface ManifestDraft {
  manifest: Manifest;
  yaml: string;
}

/** What it says of its own lifecycle does not count: publishing does not approve. */
export function draftOf(given: { manifest: JsonObject } | { yaml: string }): ManifestDraft {
  const text = "yaml" in given ? asList(given.yaml) : stringify([given.manifest]);
  return { manifest: onlyEntry(text), yaml: withLifecycle(text, "draft") };
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
export function withLifecycle(text: string, lifecycle: Lifecycle): string {
  const document = parseDocument(text, { uniqueKeys: false });
  document.setIn([0, "lifecycle"], lifecycle);
  return document.toString();
}
