/** One request to a remote server: the parsed answer, or a SvcError with the server's own words. */
import type { Json } from "../kernel/json.ts";

export type Request = (
  method: string,
  path: string,
  body?: Json,
  headers?: Record<string, string>,
) => Promise<Json>;
