/** Sentence of a card: the manifest's title with the call's values in its placeholders. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { visibleLine, visibleOneLine } from "../../../kernel/text/escape-invisible.ts";
import { titlePieces } from "../../../rules/manifest/card-template.ts";
import { readMasked } from "../../../rules/redact/mask.ts";
import type { SentencePart } from "../types.ts";
import { NOT_GIVEN_TEXT, NOT_STORED_TEXT, plainValue } from "./format.ts";
import { CARD_LIMITS } from "./limits.ts";
import { needsRemark } from "./lookalikes.ts";

/** Fills the placeholders. `args` is undefined if the values were never stored or have been deleted. */
export function fillTitle(title: string, args: JsonValue | undefined): SentencePart[] {
  return titlePieces(title).map((piece) => {
    if ("text" in piece) return { text: piece.text, value: false };
    if (args === undefined) return { text: NOT_STORED_TEXT, value: true };
    const value = piece.path === undefined ? undefined : readMasked(args, piece.path.keys);
    if (value === undefined) return { text: NOT_GIVEN_TEXT, value: true };
    return { text: visibleLine(plainValue(value), CARD_LIMITS.place_chars), value: true };
  });
}

/**
 * True if a placeholder shows the entire value. White space at an end would merge with the words around it, and a
 * placeholder has no room for remarks.
 */
export function fitsPlaceholder(value: JsonValue): boolean {
  if (needsRemark(value)) return false;
  return visibleOneLine(plainValue(value)).length <= CARD_LIMITS.place_chars;
}
