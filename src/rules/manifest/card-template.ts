/** Formats in which a manifest can show an argument. */
import { tryPath, type ValuePath } from "../../kernel/paths.ts";

export const CARD_FORMATS = ["text", "money", "time", "code", "diff"] as const;
export type CardFormat = (typeof CARD_FORMATS)[number];

/** Text between braces; a quoted field name may contain braces. */
const PLACE = /\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}/g;

type TitlePiece = { text: string } | { place: string; path: ValuePath | undefined };

/** The words and places of a title, in order. A place that is not a path into the arguments has no path. */
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
