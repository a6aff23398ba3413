/** What a finder answers, and how overlapping answers become one. */

export interface Hit {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** `key` is the name of the field that holds the text, where there is one. */
export type Finder = (text: string, key?: string) => Hit[];

/**
 * Sorted and free of overlaps. Overlapping hits become one that covers them all, so that no end of a
 * value stays readable, and it keeps the kind that was found first, as tables list the surest first.
 */
export function settle(found: readonly Hit[]): Hit[] {
  if (found.length < 2) return [...found];
  const ranked = found.map((hit, rank) => ({ ...hit, rank }));
  ranked.sort((a, b) => a.start - b.start || b.end - a.end);
  const out: { kind: string; start: number; end: number; rank: number }[] = [];
  for (const hit of ranked) {
    const last = out[out.length - 1];
    if (last === undefined || hit.start >= last.end) {
      out.push(hit);
      continue;
    }
    last.end = Math.max(last.end, hit.end);
    if (hit.rank < last.rank) [last.kind, last.rank] = [hit.kind, hit.rank];
  }
  return out.map(({ kind, start, end }) => ({ kind, start, end }));
}

/**
 * So many of one kind in one text, and the text as a whole counts as one: marking each would cost more
 * than reading it, and nothing that dense is worth keeping.
 */
export const MOST_HITS = 2_000;

/** Runs the pattern over the text; `judge` says what of a match, if anything, is a hit. */
export function collectHits(
  text: string,
  pattern: RegExp,
  hits: Hit[],
  judge: (match: RegExpExecArray) => Hit | undefined,
): void {
  let count = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const hit = judge(match);
    if (hit === undefined) continue;
    hits.push(hit);
    if (++count < MOST_HITS) continue;
    hits.push({ kind: hit.kind, start: 0, end: text.length });
    return;
  }
}

/** The last group of the match, which must stand at its end, or the whole match when it has none. */
export function atEnd(kind: string, match: RegExpExecArray): Hit {
  const end = match.index + match[0].length;
  return { kind, start: end - (match[1] ?? match[0]).length, end };
}

/** The text with every hit replaced; hits are settled, as finders return them. */
export function replaceHits(
  text: string,
  hits: readonly Hit[],
  label: (kind: string, length: number) => string,
): string {
  if (hits.length === 0) return text;
  let out = "";
  let from = 0;
  for (const hit of hits) {
    out += text.slice(from, hit.start) + label(hit.kind, hit.end - hit.start);
    from = hit.end;
  }
  return out + text.slice(from);
}

/** Bits of Shannon entropy per character: prose and names stay near 3, random keys go past 3.5. */
export function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const c of text) counts.set(c, (counts.get(c) ?? 0) + 1);
  let bits = 0;
  for (const n of counts.values()) bits -= (n / text.length) * Math.log2(n / text.length);
  return bits;
}
