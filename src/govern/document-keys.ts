/** Document keys of the engine, shared by all writers and readers. */
import { sha256Hex } from "../kernel/hash.ts";

export const stepKey = (run_id: string, step: number): string => `${run_id}/${step}`;
export const runToolKey = (run_id: string, tool: string): string => `${run_id}/${tool}`;
export const slotKey = (run_id: string, tool: string, args_hash: string): string =>
  `${run_id}/${args_hash}/${tool}`;
/** Key of a captured call by its ledger position, so that calls of the same millisecond keep their order. */
export const captureKey = (intended_seq: number): string => String(intended_seq).padStart(16, "0");
export const HALTS_KEY = "active";

/** Idempotency key of a compensation, equal on every attempt and every worker. */
export const compensationKey = (run_id: string, step: number): string => sha256Hex(`svc:${run_id}:${step}`);
