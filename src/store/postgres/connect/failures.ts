/**
 * Converts driver errors into SvcErrors. The driver's own errors are never passed on, not even as a cause: they can
 * contain the failed row, or the URL with its password.
 */
import { type ErrorCode, SvcError } from "../../../kernel/errors.ts";
import { indeterminateCommit } from "../../indeterminate-commit.ts";

/** Division by zero: a statement counts the documents it has changed, and divides by whether it changed all. */
const MISSING_DOC = "22012";
const UNIQUE_VIOLATION = "23505";

/** SQLSTATEs that help an operator. Errors report all others by number. */
const KNOWN: Record<string, readonly [ErrorCode, string]> = {
  [UNIQUE_VIOLATION]: [
    "corrupt",
    "ledger corrupt: the head row and the records in svc_ledger disagree; appends are refused",
  ],
  [MISSING_DOC]: ["unavailable", "ledger unavailable: a document in svc_docs was deleted by another program"],
  "55P03": ["unavailable", "ledger unavailable: another session holds the head of the ledger"],
  "57014": ["unavailable", "the database took too long to answer; narrow the search, or check its load"],
  "25006": ["unavailable", "ledger unavailable: the database is read-only; is it a standby?"],
  "42501": ["unavailable", "the database role lacks a right it needs on the svc_ tables"],
  "42P01": ["unavailable", "the svc_ tables are missing from this database"],
  "53300": [
    "unavailable",
    "ledger unavailable: the database allows no more connections; a process of svc needs three of them, and uses up to six",
  ],
  "53100": ["unavailable", "ledger unavailable: the database's disk is full"],
};

/** Classes whose messages name roles, databases and connections, never values. */
const SPEAKABLE = /^(?:08|28|3D|53|57)/;
/** A value that no column or index can hold. */
const VALUE = /^(?:22|54)/;

export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * Whether the error is about a value of one unit, detected by PostgreSQL or while encoding. The database itself is
 * fine.
 */
export function isValueError(error: unknown): boolean {
  const state = sqlState(error) ?? "";
  return (VALUE.test(state) && state !== MISSING_DOC) || isEncodingError(error);
}

/** Whether a document that was taken for a new one exists. */
export function isKnownDoc(error: unknown): boolean {
  return (
    sqlState(error) === UNIQUE_VIOLATION && (error as { constraint?: unknown }).constraint === "svc_docs_pkey"
  );
}

/** Node's own errors of these types, such as a bad port, have a code. The language's errors do not. */
function isEncodingError(error: unknown): boolean {
  return (error instanceof TypeError || error instanceof RangeError) && !("code" in error);
}

/** Whether the connection is lost or closing, as opposed to a rejected statement. */
export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof SvcError || isEncodingError(error)) return false;
  const state = sqlState(error);
  return state === undefined || /^(?:08|57P|53300)/.test(state);
}

export function toStoreError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  const state = sqlState(error);
  if (isValueError(error)) {
    return new SvcError("invalid", `the database cannot hold one of the values (${state ?? "not JSON"})`);
  }
  if (state === undefined) return unreachableError(error);
  const known = KNOWN[state];
  if (known !== undefined) return new SvcError(known[0], known[1]);
  const said = SPEAKABLE.test(state) && error instanceof Error ? `: ${error.message}` : "";
  return new SvcError("unavailable", `ledger unavailable: PostgreSQL answered ${state}${said}`);
}

function unreachableError(error?: unknown): SvcError {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  const hint = typeof code === "string" ? ` (${code})` : "";
  return new SvcError("unavailable", `ledger unavailable: PostgreSQL cannot be reached${hint}`);
}

export function notInTime(): SvcError {
  return new SvcError("unavailable", "ledger unavailable: PostgreSQL does not answer in time");
}

export function outcomeUnknown(): SvcError {
  return indeterminateCommit("PostgreSQL did not confirm the record in time");
}

/** The commit is durable here, but may be missing on the standby that a failover would use. */
export function notConfirmed(): SvcError {
  return indeterminateCommit("the record was not confirmed by the standby");
}
