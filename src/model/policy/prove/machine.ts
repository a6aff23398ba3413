/**
 * Texts as automata. A machine reads a text character by character and says at its end whether a condition holds;
 * several of them side by side tell which answers can occur together, each with a text that shows it.
 */

/** Why a question cannot be decided exactly; the answer is then `incomplete`, never a guess. */
export class Undecidable extends Error {}

export interface Machine {
  readonly start: number;
  step(state: number, char: number): number;
  /** What the text up to here shows: for most machines whether their condition holds, `1` or `0`. */
  shows(state: number): string;
  /** Characters at which it may begin to tell them apart. */
  readonly edges: readonly number[];
  /** What it sees of a character: two with the same sign are the same to it. */
  sign(char: number): string;
}

const MOST_STATES = 20_000;

/** Numbers states by what they are made of, so that they can be compared and remembered. */
export class StateNumbers<T> {
  private readonly ids = new Map<string, number>();
  private readonly all: T[] = [];

  of(key: string, make: () => T): number {
    const known = this.ids.get(key);
    if (known !== undefined) return known;
    if (this.all.length >= MOST_STATES) throw new Undecidable("a pattern has too many states");
    this.ids.set(key, this.all.length);
    this.all.push(make());
    return this.all.length - 1;
  }

  get(id: number): T {
    return this.all[id]!;
  }
}

/** A piece of a text: one certain unit of UTF-16, any one, or any number of them. */
export type Piece = string | typeof ONE | typeof MANY;
export const ONE = Symbol("one");
export const MANY = Symbol("many");

export function literal(text: string): Piece[] {
  return text.split("");
}

/** Texts that one of the alternatives describes as a whole; `*`, `?`, prefixes, suffixes and parts are all such. */
export function wildMachine(alternatives: readonly (readonly Piece[])[]): Machine {
  const machine = wildMachines([alternatives]);
  return { ...machine, shows: (state) => (machine.shows(state) === "" ? "0" : "1") };
}

/** Many such conditions in one machine, which shows the numbers of those that hold: a thousand names cost one walk. */
export function wildMachines(conditions: readonly (readonly (readonly Piece[])[])[]): Machine {
  const alternatives = conditions.flat();
  const conditionOf = conditions.flatMap((list, i) => list.map(() => i));
  const states = new StateNumbers<readonly (readonly [number, number])[]>();
  const intern = (places: Map<string, readonly [number, number]>) => {
    const keys = [...places.keys()].sort();
    return states.of(keys.join(" "), () => keys.map((key) => places.get(key)!));
  };
  const add = (places: Map<string, readonly [number, number]>, alternative: number, at: number) => {
    for (let place = at; ; place++) {
      places.set(`${alternative}:${place}`, [alternative, place]);
      if (alternatives[alternative]![place] !== MANY) return;
    }
  };
  const unit = (state: number, char: string): number => {
    const next = new Map<string, readonly [number, number]>();
    for (const [alternative, place] of states.get(state)) {
      const piece = alternatives[alternative]![place];
      if (piece === MANY) add(next, alternative, place);
      else if (piece === ONE || piece === char) add(next, alternative, place + 1);
    }
    return intern(next);
  };
  const first = new Map<string, readonly [number, number]>();
  for (let i = 0; i < alternatives.length; i++) add(first, i, 0);
  const units = new Set(alternatives.flat().filter((piece) => typeof piece === "string"));
  const texts = alternatives.map((pieces) =>
    pieces.map((piece) => (typeof piece === "string" ? piece : "")).join(""),
  );
  return {
    start: intern(first),
    step: (state, char) => [...units16(char)].reduce(unit, state),
    shows(state) {
      const ended = states
        .get(state)
        .filter(([alternative, place]) => place === alternatives[alternative]!.length);
      return [...new Set(ended.map(([alternative]) => conditionOf[alternative]!))]
        .sort((a, b) => a - b)
        .join(" ");
    },
    edges: texts.flatMap((text) => [...text].flatMap((char) => around(char.codePointAt(0)!))),
    sign: (char) =>
      units16(char)
        .map((one) => (units.has(one) ? one.charCodeAt(0) : -1))
        .join(","),
  };
}

function units16(char: number): string[] {
  return String.fromCodePoint(char).split("");
}

export function around(char: number): number[] {
  return [char - 1, char, char + 1];
}
