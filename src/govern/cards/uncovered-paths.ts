/**
 * Finds argument paths that make a rule require approval but that the tool's card does not show. Reported to authors of
 * policies and manifests.
 */
import { tryPath, type ValuePath } from "../../kernel/paths.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import { titlePieces } from "../../rules/manifest/card-template.ts";
import type { ManifestSet, ToolManifest } from "../../rules/manifest/types.ts";
import type { MatchDoc, PolicyDoc } from "../../rules/policy/schema.ts";

interface Asking {
  id: string;
  match: MatchDoc | undefined;
  paths: string[];
}

export function uncoveredPaths(policy: PolicyDoc, manifests: Pick<ManifestSet, "all" | "active">): string[] {
  const tools = manifests.all.filter((manifest) => manifests.active(manifest.tool) === manifest);
  return askingEntries(policy).flatMap(({ id, match, paths }) =>
    tools
      .filter((manifest) => speaksOf(match, manifest))
      .flatMap((manifest) =>
        paths
          .filter((path) => !isShown(path, manifest))
          .map(
            (path) =>
              `rule ${id} requires approval by ${path}, which the card of ${manifest.tool} does not show`,
          ),
      ),
  );
}

function askingEntries(policy: PolicyDoc): Asking[] {
  const rules = (policy.rules ?? [])
    .filter(({ action }) => action === "require_approval")
    .map(({ id, match, when }) => ({ id, match, paths: [...new Set((when ?? []).map(({ path }) => path))] }));
  const budgets = (policy.budgets ?? [])
    .filter(({ action }) => action === "require_approval")
    .map(({ id, match, path }) => ({ id, match, paths: [path] }));
  return [...rules, ...budgets];
}

function speaksOf(match: MatchDoc | undefined, manifest: ToolManifest): boolean {
  const fits = (pattern: string | undefined, value: string | null) =>
    pattern === undefined || pattern === "*" || (value !== null && globMatches(pattern, value));
  return (
    fits(match?.tool, manifest.tool) &&
    fits(match?.effect, manifest.effect) &&
    fits(match?.data_class, manifest.risk.data_class)
  );
}

/** Without a card in the manifest, every argument is shown except masked ones. */
function isShown(source: string, { card, audit }: ToolManifest): boolean {
  const path = tryPath(source);
  if (path === undefined) return true;
  const revealed = pathsOf(card?.reveal ?? []).some((shown) => covers(shown, path));
  if (!revealed && pathsOf(audit.redaction).some((hidden) => covers(hidden, path))) return false;
  if (card === undefined) return true;
  const named = pathsOf(card.fields.map((field) => field.path));
  const placed = titlePieces(card.title ?? "").flatMap((piece) =>
    "path" in piece ? (piece.path ?? []) : [],
  );
  if (named.length + placed.length === 0) return true;
  return [...named, ...placed].some((shown) => covers(shown, path));
}

const pathsOf = (sources: readonly string[]): ValuePath[] =>
  sources.flatMap((source) => tryPath(source) ?? []);

function covers(wide: ValuePath, narrow: ValuePath): boolean {
  return (
    wide.root === narrow.root &&
    wide.keys.length <= narrow.keys.length &&
    wide.keys.every((key, i) => String(key) === String(narrow.keys[i]))
  );
}
