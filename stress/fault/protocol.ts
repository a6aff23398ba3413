/** What the processes of the fault run and the one that drives them say to each other. */
import type { StoreKind } from "../../src/store/open.ts";

export interface Place {
  store: StoreKind;
  data: string;
  database_url: string | null;
}

/** An answer, and the record that proves it. */
export interface Ack {
  kind: "allow" | "blocked" | "outcome";
  seq: number;
  hash: string;
  run_id: string;
  step: number;
  asked: number;
}

/**
 * A run with one call: waiting for a person, with the request's id; granted once, with the grant's; or accepted and
 * not yet reported.
 */
export interface Seeded {
  run_id: string;
  id: string;
}

export interface Attempt extends Seeded {
  act: "approve" | "deny" | "expire" | "use" | "revoke" | "report" | "resolve";
  by: string;
}

export interface AttemptResult {
  act: Attempt["act"];
  run_id: string;
  won: boolean;
  /** Both on the machine's monotonic clock. */
  asked: number;
  answered: number;
}

export interface WorkerOps {
  open(place: Place): void;
  /** Begins to ask for calls, in so many runs side by side. */
  load(input: { label: string; width: number }): void;
  /** Ends the load once all open requests are answered; returns how often the store refused so far. */
  rest(): number;
  /** How often the store has refused so far. */
  refusals(): number;
  /** Asks until a ledger that was set back has been refused, or an answer came. */
  insist(): void;
  /** Sets how far this process's clock is ahead. */
  clock(ms: number): void;
  seed(input: { label: string; count: number; call: "waiting" | "accepted" | "granted" }): Seeded[];
  attempt(attempts: Attempt[]): AttemptResult[];
  halt(reason: string): { id: string; seq: number; answered: number };
  resume(id: string): { seq: number };
  close(): void;
}
