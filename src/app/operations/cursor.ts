/** Cursors are opaque to clients: a position in a sorted listing, or in the ledger. */
import { invalid } from "../../kernel/errors.ts";

export interface Position {
  sort: number;
  key: string;
}

export function encodeCursor({ sort, key }: Position): string {
  return Buffer.from(JSON.stringify([sort, key])).toString("base64url");
}

/** Where a listing goes on: behind the last row of the page that gave the cursor, or at its beginning. */
export function positionOf(cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(parsed) && Number.isFinite(parsed[0]) && typeof parsed[1] === "string") {
      return { sort: parsed[0] as number, key: parsed[1] };
    }
  } catch {
    // Falls through to the one message.
  }
  throw invalid("cursor: not a cursor of this listing; take it from next_cursor");
}

/** A listing that was asked for one row more than its page holds: the page, and a cursor if that row is there. */
export function cutPage<T extends Position>(
  rows: readonly T[],
  limit: number,
): { page: readonly T[]; next: string | null } {
  if (rows.length <= limit) return { page: rows, next: null };
  const page = rows.slice(0, limit);
  return { page, next: encodeCursor(page[limit - 1]!) };
}
