/** The sentence of a card: the manifest's words with the call's values in their places. */
import type { Json } from "../../kernel/json.ts";
import { type Path, tryPath } from "../../kernel/paths.ts";
import { visibleLine, visibleWholeLine } from "../../kernel/visible.ts";
import { readShown } from "../mask.ts";
import { NOT_GIVEN, NOT_KEPT, plainValue } from "./format.ts";
import { CARD_LIMITS } from "./limits.ts";
import type { SentencePart } from "./types.ts";

/** What stands between braces, a quoted name of a field with braces of its own included. */
const PLACE = /\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}/g;

type TitlePiece = { text: string } | { place: string; path: Path | undefined };

/** The words and places of a title, in order; a place that is no path into the arguments has none. */
export function titlePieces(title: string): TitlePiece[] {
  const pieces: TitlePiece[] = [];
  let done = 0;
  for (const match of title.matchAll(PLACE)) {
    if (match.index > done) pieces.push({ text: title.slice(done, match.index) });
    const path = tryPath(match[1]!.trim());
    pieces.push({ place: match[0], path: path?.root === "args" ? path : undefined });
    done = match.index + match[0].length;
  }
  if (done < title.length) pieces.push({ text: title.slice(done) });
  return pieces;
}

/** `args` undefined: the values are not kept, or no longer. */
export function sentenceOf(title: string, args: Json | undefined): SentencePart[] {
  return titlePieces(title).map((piece) => {
    if ("text" in piece) return { text: piece.text, value: false };
    if (args === undefined) return { text: NOT_KEPT, value: true };
    const value = piece.path === undefined ? undefined : readShown(args, piece.path.keys);
    if (value === undefined) return { text: NOT_GIVEN, value: true };
    return { text: visibleLine(plainValue(value), CARD_LIMITS.place_chars), value: true };
  });
}

/** Whether a place shows the value whole. */
export function fitsPlace(value: Json): boolean {
  return visibleWholeLine(plainValue(value)).length <= CARD_LIMITS.place_chars;
}
