/** Calling an operation from the command line: the same door as every surface, as a local principal. */
import type { App } from "../app/app.ts";
import type { Operation } from "../app/operation.ts";
import { perform, type RawInput } from "../app/perform.ts";
import { localPrincipal } from "./context.ts";

export function performLocally(
  app: App,
  op: Operation,
  input: Partial<RawInput>,
  actor?: string,
): Promise<unknown> {
  return perform(
    op,
    {
      app,
      principal: localPrincipal(actor),
      signal: new AbortController().signal,
      headers: { idempotency_key: undefined, if_match: undefined, accept: undefined },
    },
    { params: {}, query: {}, body: {}, ...input },
  );
}
