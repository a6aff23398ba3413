/** Turns an operation's input into the HTTP request that a client sends. */
import type { HttpRow } from "./http-row.ts";

interface WrittenRequest {
  method: HttpRow["method"];
  /** Path including the query. */
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown> | undefined;
}

export function writeRequest(row: HttpRow, input: object): WrittenRequest {
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const { field, write } = row.params[name]!;
    return encodeURIComponent(write(given[field]));
  });
  const query = new URLSearchParams();
  for (const [name, { field, write }] of Object.entries(row.query))
    if (given[field] !== undefined) query.set(name, write(given[field]));
  const headers: Record<string, string> = {};
  for (const { header, field, write } of row.headers)
    if (given[field] !== undefined) headers[header] = write(given[field]);
  const rest = Object.entries(given).filter(([name]) => !row.placed.has(name));
  return {
    method: row.method,
    path: query.size === 0 ? path : `${path}?${query}`,
    headers,
    body: row.body ? Object.fromEntries(rest) : undefined,
  };
}
