/** Hits of the finders, and how overlapping hits merge. */

export interface DetectorHit {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** `key` is the name of the field that contains the text, if any. */
export type HitFinder = (text: string, key?: string) => DetectorHit[];

/**
 * Sorts hits and merges overlapping ones into one that covers them all, so that no end of a value stays readable. The
 * merged hit has the kind found first, because tables list the most certain kinds first.
 */
export function mergeHits(found: readonly DetectorHit[]): DetectorHit[] {
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
 * Maximum hits of one kind in a text. Above it the entire text is one hit: marking each would cost more than reading
 * them, and text that dense is not worth storing.
 */
export const MAX_HITS = 2_000;

/** Runs a pattern over the text. `judge` returns the part of a match that is a hit, or undefined. */
export function collectHits(
  text: string,
  pattern: RegExp,
  hits: DetectorHit[],
  judge: (match: RegExpExecArray) => DetectorHit | undefined,
): void {
  let count = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const hit = judge(match);
    if (hit === undefined) continue;
    hits.push(hit);
    if (++count < MAX_HITS) continue;
    hits.push({ kind: hit.kind, start: 0, end: text.length });
    return;
  }
}

/** Hit on the last group, which must end the match, or on the entire match if the pattern has no group. */
export function trailingHit(kind: string, match: RegExpExecArray): DetectorHit {
  const end = match.index + match[0].length;
  return { kind, start: end - (match[1] ?? match[0]).length, end };
}

/** Replaces every hit in the text. The hits must be sorted and free of overlaps, as finders return them. */
export function replaceHits(
  text: string,
  hits: readonly DetectorHit[],
  label: (kind: string, hidden: string) => string,
): string {
  if (hits.length === 0) return text;
  let out = "";
  let from = 0;
  for (const hit of hits) {
    out += text.slice(from, hit.start) + label(hit.kind, text.slice(hit.start, hit.end));
    from = hit.end;
  }
  return out + text.slice(from);
}

/** Shannon entropy in bits per character: near 3 for prose and names, over 3.5 for random keys. */
export function shannonEntropy(text: string): number {
  const counts = new Map<string, number>();
  for (const c of text) counts.set(c, (counts.get(c) ?? 0) + 1);
  let bits = 0;
  for (const n of counts.values()) bits -= (n / text.length) * Math.log2(n / text.length);
  return bits;
}
