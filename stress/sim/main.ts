/**
 * `npm run sim [-- --histories n --seed s --store memory|files|sqlite|postgres --rollbacks n
 * --foreign n]`: random histories, each from its seed, on the service and on a model of it. Prints how many, how
 * fast, and the first seed on which the two disagree, with the shortest history that shows it. Exits 1 if there is
 * one.
 */
import { parseArgs } from "node:util";
import { STORE_KINDS } from "../../src/store/open.ts";
import { Case } from "../../test/sim/rollback-case.ts";
import { Places } from "../fault/places.ts";
import { type Action, makeHistory } from "./actions.ts";
import { ForeignHistory } from "./foreign.ts";
import { openPlace, type SimStore } from "./handles.ts";
import { type Disagreement, least, play } from "./play.ts";

const STORES: readonly SimStore[] = ["memory", ...STORE_KINDS];
/** The share of the requested histories that a store gets, and how many of them run concurrently on one store. */
const SHARES: Record<SimStore, { part: number; a_place: number; abreast: number }> = {
  memory: { part: 1, a_place: 1, abreast: 1 },
  files: { part: 0.02, a_place: 50, abreast: 10 },
  sqlite: { part: 0.02, a_place: 50, abreast: 10 },
  postgres: { part: 0.02, a_place: 50, abreast: 10 },
};

interface Found extends Disagreement {
  seed: number;
}

export async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      histories: { type: "string", default: "1000" },
      rollbacks: { type: "string", default: "200" },
      foreign: { type: "string", default: "200" },
      seed: { type: "string", default: "1" },
      store: { type: "string", multiple: true, default: [...STORES] },
    },
  });
  const stores = values.store as SimStore[];
  const numbers = [values.histories, values.rollbacks, values.foreign, values.seed];
  if (numbers.some((text) => !/^\d{1,9}$/.test(text)))
    return refuse("a number of histories is a whole number");
  if (stores.some((name) => !STORES.includes(name))) return refuse(`--store: one of ${STORES.join(", ")}`);
  const first = Number(values.seed);
  const places = new Places();
  try {
    for (const store of stores) {
      const count = Math.ceil(Number(values.histories) * (stores.length === 1 ? 1 : SHARES[store].part));
      const found = await timed(`${store} histories`, count, () => playMany(store, first, count, places));
      if (found !== undefined) return show(store, found);
    }
  } finally {
    await places.close();
  }
  const rollbacks = Number(values.rollbacks);
  const problem = await timed("rollback histories", rollbacks, () => playRollbacks(first, rollbacks));
  if (problem !== undefined) return refuse(problem);
  const foreign = Number(values.foreign);
  const lost = await timed("histories with a foreign writer", foreign, () => playForeign(first, foreign));
  return lost === undefined ? 0 : refuse(lost);
}

async function playMany(
  store: SimStore,
  first: number,
  count: number,
  places: Places,
): Promise<Found | undefined> {
  const { a_place, abreast } = SHARES[store];
  let found: Found | undefined;
  for (let from = first; from < first + count && found === undefined; from += a_place) {
    const until = Math.min(from + a_place, first + count);
    const place = await openPlace(store, places);
    let next = from;
    const lane = async (): Promise<void> => {
      while (next < until && found === undefined) {
        const seed = next++;
        const disagreement = await play(makeHistory(seed), `h${seed}`, seed, place);
        if (disagreement !== undefined) found ??= { ...disagreement, seed };
      }
    };
    await Promise.all(Array.from({ length: abreast }, lane));
    const bad = await place.close();
    if (bad !== -1)
      found ??= { seed: from, trace: [], model: "a chain that verifies", service: `record ${bad}` };
  }
  return found && { ...(await shrink(store, found, places)), seed: found.seed };
}

async function shrink(store: SimStore, found: Found, places: Places): Promise<Disagreement> {
  return least(found, async (actions: readonly Action[]) => {
    const place = await openPlace(store, places);
    try {
      return await play(actions, "least", found.seed, place);
    } finally {
      await place.close();
    }
  });
}

/** Rollbacks that die, are paused and replaced have a separate simulation. */
async function playRollbacks(first: number, count: number): Promise<string | undefined> {
  for (let seed = first; seed < first + count; seed++) {
    const one = new Case(seed);
    await one.play();
    if (one.problems.length > 0) return `rollback seed ${seed}: ${one.problems.join("; ")}`;
  }
  return undefined;
}

async function playForeign(first: number, count: number): Promise<string | undefined> {
  const sum = { complete: 0, calls: 0, writes: 0, undone: 0, conflicts: 0 };
  for (let seed = first; seed < first + count; seed++) {
    const one = new ForeignHistory(seed);
    await one.play();
    if (one.problems.length > 0) return `foreign seed ${seed}: ${one.problems.join("; ")}`;
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += one.counts[name];
  }
  const { complete, calls, writes, undone, conflicts } = sum;
  const told = [
    `${calls} calls`,
    `${writes} foreign writes`,
    `${undone} undone`,
    `${conflicts} left in conflict`,
    `${complete} complete of runs whose calls overlapped`,
  ];
  console.log(told.join(", "));
  return undefined;
}

async function timed<T>(what: string, count: number, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const value = await work();
  const seconds = (performance.now() - began) / 1_000;
  const verdict = value === undefined ? "no disagreement" : "DISAGREEMENT";
  const rate = Math.round(count / seconds).toLocaleString("en-US");
  console.log(`${count.toLocaleString("en-US")} ${what}, ${rate}/s: ${verdict}`);
  return value;
}

function show(store: SimStore, { seed, trace, model, service }: Found): number {
  console.log(`\nseed ${seed} on ${store}; the shortest history that shows it:`);
  for (const action of trace) console.log(`  ${JSON.stringify(action)}`);
  console.log(`the model says   ${JSON.stringify(model)}\nthe service says ${JSON.stringify(service)}`);
  return 1;
}

function refuse(message: string): number {
  console.error(message);
  return 1;
}
