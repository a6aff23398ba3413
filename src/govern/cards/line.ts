/**
 * Line of a call: the manifest's sentence for everybody who can read the run. It is stored with the step and deleted
 * with the run. Credentials and redacted paths are masked, also those that a card reveals to approvers.
 */
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { cachedResult, cacheResult } from "../../kernel/json/large-value-cache.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { visibleLine } from "../../kernel/text/escape-invisible.ts";
import { titlePieces } from "../../rules/manifest/card-template.ts";
import type { CardTemplate, ToolManifest } from "../../rules/manifest/types.ts";
import { fillTitle } from "./text/sentence.ts";
import { computingVisibleArgs } from "./visible-values.ts";

/** A longer line is cut. */
export const CARD_LINE_CHARS = 200;

type LinedManifest = Pick<ToolManifest, "audit"> & { card: CardTemplate & { line: string } };

const hasLine = (manifest: ToolManifest | null): manifest is ToolManifest & LinedManifest =>
  manifest?.card?.line !== undefined;

/** Undefined if the manifest has no line; surfaces then show the tool's name. */
export function cardLine(args: JsonValue, manifest: ToolManifest | null): string | undefined {
  if (!hasLine(manifest)) return undefined;
  return cachedResult<string>(args, manifest.card) ?? runAtOnce(computingCardLine(args, manifest));
}

/** Caches the line of large arguments, which another thread computed, for `cardLine`. */
export function cacheCardLine(
  args: JsonValue,
  manifest: ToolManifest | null,
  line: string | undefined,
): void {
  if (hasLine(manifest) && line !== undefined) cacheResult(args, manifest.card, line);
}

function* computingCardLine(args: JsonValue, { card: { line }, audit }: LinedManifest): PausableWork<string> {
  const masked = yield* computingVisibleArgs(namedArguments(args, line), { audit });
  const sentence = fillTitle(line, masked)
    .map(({ text }) => text)
    .join("");
  return visibleLine(sentence, CARD_LINE_CHARS);
}

/** The arguments that the line names, so that the others cost nothing. */
function namedArguments(args: JsonValue, line: string): JsonValue {
  if (!isJsonObject(args)) return args;
  const names = titlePieces(line).flatMap((piece) =>
    "path" in piece ? String(piece.path?.keys[0] ?? "") : [],
  );
  return Object.fromEntries(
    [...new Set(names)].flatMap((name) => (Object.hasOwn(args, name) ? [[name, args[name]!]] : [])),
  );
}
