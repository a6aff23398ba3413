/** Finds which results of several machines can occur together, with a few of the shortest example texts for each. */
import { type TextMachine, UndecidableError } from "./machine.ts";

/** Maximum state combinations per list of conditions; above it the result is incomplete. */
const MAX_STATE_COMBINATIONS = 50_000;
/** Texts stored per combination, since a later check can reject the first. */
const KEPT = 3;

/** Preferred characters for examples, in this order. */
const NICE = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_./@ ,:;+*?!=()[]{}";
const OTHERS = [0x7f, 0xa0, 0xe9, 0x4e00, 0xfffd, 0x1f600, 10, 9, 0];

interface MachineWord {
  /** Result of each machine. */
  shown: string[];
  texts: string[];
  /** True if further texts exist. */
  more: boolean;
}

export function exampleTexts(machines: readonly TextMachine[]): MachineWord[] {
  if (machines.length === 0) return [{ shown: [], texts: ["a"], more: true }];
  const alphabet = alphabetOf(machines);
  const steps = machines.map(remembering);
  const found = new Map<string, MachineWord>();
  const seen = new Set<string>();
  let places: { states: readonly number[]; text: string }[] = [
    { states: machines.map(({ start }) => start), text: "" },
  ];
  seen.add(places[0]!.states.join(","));
  while (places.length > 0) {
    const next: typeof places = [];
    for (const { states, text } of places) {
      note(found, machines, states, text);
      for (const char of alphabet) {
        const after = states.map((state, i) => steps[i]!(state, char));
        const longer = text + String.fromCodePoint(char);
        const key = after.join(",");
        if (seen.has(key)) {
          // A known state, but another text with the same results.
          if (longer.length <= 2) note(found, machines, after, longer);
          continue;
        }
        if (seen.size >= MAX_STATE_COMBINATIONS)
          throw new UndecidableError("its patterns have too many states in total");
        seen.add(key);
        next.push({ states: after, text: longer });
      }
    }
    places = next;
  }
  return [...found.values()];
}

function remembering({ step }: TextMachine): TextMachine["step"] {
  const known = new Map<string, number>();
  return (state, char) => {
    const key = `${state} ${char}`;
    let after = known.get(key);
    if (after === undefined) {
      after = step(state, char);
      known.set(key, after);
    }
    return after;
  };
}

function note(
  found: Map<string, MachineWord>,
  machines: readonly TextMachine[],
  states: readonly number[],
  text: string,
): void {
  const shown = machines.map((machine, i) => machine.shows(states[i]!));
  const key = shown.join("|");
  const word = found.get(key);
  if (word === undefined) found.set(key, { shown, texts: [text], more: false });
  else if (word.texts.includes(text)) return;
  else if (word.texts.length < KEPT) word.texts.push(text);
  else word.more = true;
}

/** One character for each class that the machines distinguish. */
function alphabetOf(machines: readonly TextMachine[]): number[] {
  const chars = new Set<number>([...NICE].map((char) => char.codePointAt(0)!));
  for (const char of OTHERS) chars.add(char);
  for (const { edges } of machines) for (const char of edges) chars.add(char);
  const bySign = new Map<string, number>();
  for (const char of chars) {
    if (char < 0 || char > 0x10ffff || (char >= 0xd800 && char <= 0xdfff)) continue;
    const sign = machines.map((machine) => machine.sign(char)).join("|") + (char > 0xffff ? "+" : "");
    if (!bySign.has(sign)) bySign.set(sign, char);
  }
  return [...bySign.values()];
}
