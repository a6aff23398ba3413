/** How documents of the engine are addressed; one place, so that every writer and reader agrees. */
import { sha256Hex } from "../kernel/hash.ts";

export const stepKey = (run_id: string, step: number): string => `${run_id}/${step}`;
export const runToolKey = (run_id: string, tool: string): string => `${run_id}/${tool}`;
export const slotKey = (run_id: string, tool: string, args_hash: string): string =>
  `${run_id}/${args_hash}/${tool}`;
/** Of a captured call, by its place on the ledger: calls of one millisecond keep their order. */
export const captureKey = (intended_seq: number): string => String(intended_seq).padStart(16, "0");
export const HALTS_KEY = "active";

/** The key a compensation carries on every try, on every worker, for ever. */
export const compensationKey = (run_id: string, step: number): string => sha256Hex(`svc:${run_id}:${step}`);
