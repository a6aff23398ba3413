/** Reference page of the service packs: what each tool's undo is, what stays, and what it was tried against. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readManifests } from "../../../src/rules/manifest/load.ts";
import type { ToolManifest } from "../../../src/rules/manifest/types.ts";
import { ROOT } from "../files.ts";
import { codeSpan, generatedNote, markdownTable } from "./markdown.ts";

const FOLDER = "packs/services";

export function servicesPage(): string {
  const proven = JSON.parse(readFileSync(join(ROOT, FOLDER, "proven.json"), "utf8")) as {
    emulator: string;
    tools: string[];
  };
  const tried = new Set(proven.tools);
  const packs = readdirSync(join(ROOT, FOLDER))
    .filter((name) => name.endsWith(".yaml"))
    .sort()
    .map((name) => {
      const text = readFileSync(join(ROOT, FOLDER, name), "utf8");
      return { name: name.slice(0, -5), manifests: readManifests([{ file: name, text }]).all };
    });
  const writes = packs.flatMap(({ manifests }) => manifests.filter(({ effect }) => effect !== "read"));
  const undoable = writes.filter(({ compensation }) => compensation !== null);
  const shown = undoable.filter(({ tool }) => tried.has(tool));
  const tables = packs.map(({ name, manifests }) => tableOf(name, manifests, tried, proven.emulator));
  return `# Undo on services

${generatedNote("packs/services")}

The packs are manifests for [HTTP requests](../guides/proxy.md). How to use them: [packs for services](../guides/service-packs.md).

The packs have ${writes.length} tools that write. ${undoable.length} have an undo, and ${shown.length} of these undos restored the state of an emulator
(\`${proven.emulator}\`). Nothing was tried against the real services, which can behave differently from the emulator.

${tables.join("\n")}`;
}

function tableOf(
  name: string,
  manifests: readonly ToolManifest[],
  tried: ReadonlySet<string>,
  emulator: string,
): string {
  const reads = manifests.filter(({ effect }) => effect === "read").length;
  const rows = manifests
    .filter(({ effect }) => effect !== "read")
    .map(({ tool, compensation, effect_check }) => [
      codeSpan(tool.slice(name.length + 1)),
      compensation === null ? "none" : undoText(compensation, name),
      compensation === null ? "everything" : compensation.residue.join("; ") || "nothing",
      compensation === null ? "–" : (compensation.until ?? "no limit"),
      effect_check === undefined ? "no" : "yes",
      compensation === null ? "–" : tried.has(tool) ? codeSpan(emulator) : "not proven",
    ]);
  return `## ${name}

${reads} tools only read. The others:

${markdownTable(["Tool", "Undo", "What stays", "Until", "Effect checked", "Proven against"], rows)}`;
}

/** An undo can depend on whether the target was there before the call. */
function undoText({ tool, when_absent }: NonNullable<ToolManifest["compensation"]>, pack: string): string {
  const text = codeSpan(tool.slice(pack.length + 1));
  return when_absent === undefined || when_absent.tool === tool
    ? text
    : `${codeSpan(when_absent.tool.slice(pack.length + 1))} if it was not there, else ${text}`;
}
