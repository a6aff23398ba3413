/** What the servers of `scale` are asked to do, and what they answer. */
import type { BatchStats } from "../src/store/postgres/writer.ts";

export type ScaleWork =
  | { kind: "intents" | "contested"; seconds: number }
  | { kind: "neighbour"; seconds: number; flood: number };

export interface ScaleFigures {
  decided: number;
  elapsed_ms: number;
  cpu_us: number;
  work: BatchStats;
  p99_ms: number;
}

/** Of each server. */
export const AGENTS = 64;
