/**
 * Automata over texts. A machine reads a text character by character and reports at its end if a condition holds.
 * Running several machines together shows which results can occur together, each with an example text.
 */

/** Thrown when a question cannot be decided exactly. The result is then `incomplete`, never a guess. */
export class UndecidableError extends Error {}

export interface TextMachine {
  readonly start: number;
  step(state: number, char: number): number;
  /** Result for the text read so far: for most machines `1` or `0`, for their condition. */
  shows(state: number): string;
  /** Characters that start a new range of equivalent characters. */
  readonly edges: readonly number[];
  /** Equivalence class of a character: the machine treats characters with the same sign alike. */
  sign(char: number): string;
}

const MAX_MACHINE_STATES = 20_000;

/** Numbers states by a key of their content, so that they can be compared and cached. */
export class StateNumbers<T> {
  private readonly ids = new Map<string, number>();
  private readonly all: T[] = [];

  of(key: string, make: () => T): number {
    const known = this.ids.get(key);
    if (known !== undefined) return known;
    if (this.all.length >= MAX_MACHINE_STATES) throw new UndecidableError("a pattern has too many states");
    this.ids.set(key, this.all.length);
    this.all.push(make());
    return this.all.length - 1;
  }

  get(id: number): T {
    return this.all[id]!;
  }
}

/** Piece of a text pattern: a specific UTF-16 unit, any one unit, or any number of units. */
export type PatternPiece = string | typeof ANY_ONE | typeof ANY_MANY;
export const ANY_ONE = Symbol("one");
export const ANY_MANY = Symbol("many");

export function literalPieces(text: string): PatternPiece[] {
  return text.split("");
}

/** Accepts texts that match one of the alternatives completely. Covers `*`, `?`, prefixes, suffixes and substrings. */
export function wildMachine(alternatives: readonly (readonly PatternPiece[])[]): TextMachine {
  const machine = wildMachines([alternatives]);
  return { ...machine, shows: (state) => (machine.shows(state) === "" ? "0" : "1") };
}

/**
 * Combines many such conditions in one machine that reports the numbers of those that hold, so that a thousand names
 * cost one walk.
 */
export function wildMachines(conditions: readonly (readonly (readonly PatternPiece[])[])[]): TextMachine {
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
      if (alternatives[alternative]![place] !== ANY_MANY) return;
    }
  };
  const unit = (state: number, char: string): number => {
    const next = new Map<string, readonly [number, number]>();
    for (const [alternative, place] of states.get(state)) {
      const piece = alternatives[alternative]![place];
      if (piece === ANY_MANY) add(next, alternative, place);
      else if (piece === ANY_ONE || piece === char) add(next, alternative, place + 1);
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
    edges: texts.flatMap((text) => [...text].flatMap((char) => withNeighbours(char.codePointAt(0)!))),
    sign: (char) =>
      units16(char)
        .map((one) => (units.has(one) ? one.charCodeAt(0) : -1))
        .join(","),
  };
}

function units16(char: number): string[] {
  return String.fromCodePoint(char).split("");
}

export function withNeighbours(char: number): number[] {
  return [char - 1, char, char + 1];
}
