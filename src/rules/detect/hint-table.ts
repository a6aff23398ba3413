/**
 * Finds in one pass which of many short literals occur in a text, so that only patterns that can match are run.
 * Searching for each literal would cost one pass per literal, and most texts contain none.
 */

interface Node {
  readonly next: Map<number, Node>;
  hint: string | null;
}

export class HintTable {
  /** Pairs of characters that start a literal; rules out most positions. */
  private readonly pairs = new Uint8Array(65_536);
  private readonly root: Node = { next: new Map(), hint: null };
  private readonly single: readonly string[];

  constructor(hints: Iterable<string>) {
    const all = [...new Set(hints)];
    this.single = all.filter((hint) => hint.length === 1);
    for (const hint of all.filter((one) => one.length > 1)) {
      this.pairs[pairAt(hint, 0)] = 1;
      let node = this.root;
      for (let i = 0; i < hint.length; i++) {
        const c = hint.charCodeAt(i);
        const next: Node = node.next.get(c) ?? { next: new Map(), hint: null };
        node.next.set(c, next);
        node = next;
      }
      node.hint = hint;
    }
  }

  /** Literals that occur in the text; undefined if none does. */
  present(text: string): ReadonlySet<string> | undefined {
    let found: Set<string> | undefined;
    const add = (hint: string) => {
      found ??= new Set();
      found.add(hint);
    };
    for (const hint of this.single) if (text.includes(hint)) add(hint);
    for (let i = 0; i + 1 < text.length; i++) {
      if (this.pairs[pairAt(text, i)] === 0) continue;
      let node: Node | undefined = this.root;
      for (let j = i; node !== undefined; j++) {
        if (node.hint !== null) add(node.hint);
        node = node.next.get(text.charCodeAt(j));
      }
    }
    return found;
  }
}

function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) & 0xff) << 8) | (text.charCodeAt(at + 1) & 0xff);
}
