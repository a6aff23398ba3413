/** Cursors, opaque to clients: a position in a sorted listing, or in the ledger. */
import { invalidError } from "../kernel/errors.ts";

export interface ListPosition {
  sort: number;
  key: string;
}

export function encodeCursor({ sort, key }: ListPosition): string {
  return Buffer.from(JSON.stringify([sort, key])).toString("base64url");
}

/** Start of a listing: after the last row of the previous page, or at the beginning. */
export function positionOf(cursor: string | undefined): ListPosition | undefined {
  if (cursor === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(parsed) && Number.isFinite(parsed[0]) && typeof parsed[1] === "string") {
      return { sort: parsed[0] as number, key: parsed[1] };
    }
  } catch {
    // Falls through to the one error message.
  }
  throw invalidError("cursor: not a cursor of this listing; take it from next_cursor");
}

/** Splits a listing of one row more than a page: returns the page, and a cursor if the extra row exists. */
export function cutPage<T extends ListPosition>(
  rows: readonly T[],
  limit: number,
): { page: readonly T[]; next: string | null } {
  if (rows.length <= limit) return { page: rows, next: null };
  const page = rows.slice(0, limit);
  return { page, next: encodeCursor(page[limit - 1]!) };
}
