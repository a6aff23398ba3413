/** Compares the packs, and the kept facts about each service, with the service's published description. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ApiFacts, apiFacts, driftProblems, packManifests } from "../../test/packs/apis/facts.ts";
import { DESCRIPTION_SOURCES } from "../../test/packs/apis/sources.ts";

/** Exits 1 if a pack names what the description lacks, or if the kept facts are not those of the description. */
export function comparePacks(folder: string, write: boolean): number {
  let equal = true;
  for (const [pack, source] of Object.entries(DESCRIPTION_SOURCES)) {
    const manifests = packManifests("packs/services", pack);
    const fresh = apiFacts(manifests, source, folder);
    const file = join("test/packs/apis", `${pack}.json`);
    if (write) writeFileSync(file, factsText(fresh));
    const kept = JSON.parse(readFileSync(file, "utf8")) as ApiFacts;
    const tools = new Set([...Object.keys(fresh.operations), ...Object.keys(kept.operations)]);
    const isSame = (tool: string) =>
      JSON.stringify(fresh.operations[tool]) === JSON.stringify(kept.operations[tool]);
    const changed = [...tools].filter((tool) => !isSame(tool));
    const problems = driftProblems(manifests, fresh, source.undescribed);
    const { version, date } = fresh;
    console.log(JSON.stringify({ pack, version, date, tools: tools.size, changed, problems }));
    if (changed.length + problems.length > 0) equal = false;
  }
  return equal ? 0 : 1;
}

/** One line an operation, so that a change is easy to review. */
function factsText({ operations, ...origin }: ApiFacts): string {
  const lines = Object.entries(operations).map(([tool, facts]) => `  "${tool}": ${JSON.stringify(facts)}`);
  const head = JSON.stringify(origin).slice(1, -1);
  return `{${head}, "operations": {\n${lines.join(",\n")}\n}}\n`;
}
