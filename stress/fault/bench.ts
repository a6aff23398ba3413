/** What a fault is given to work with. */
import type { StoreKind } from "../../src/store/open.ts";
import type { Places } from "./places.ts";
import type { Row } from "./row.ts";
import type { Crew } from "./writer.ts";

export interface Bench {
  store: StoreKind;
  crew: Crew;
  places: Places;
  /** Numbers in [0, 1) from the run's seed. */
  random(): number;
  /** How many trials are wanted. */
  count: number;
}

/** One kind of fault: it makes trials until there are as many as wanted, and answers its row. */
export type Fault = (bench: Bench) => Promise<Row>;

/** As many processes as write to one store at a time. */
export const WRITERS = 4;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
