/** Calling an operation from the command line: the same door as every surface, as a local principal. */
import type { z } from "zod";
import type { App } from "../app/app.ts";
import type { Operation } from "../app/operation.ts";
import { perform } from "../app/perform.ts";
import { localPrincipal } from "./context.ts";

export function performLocally<I extends z.ZodType, O>(
  app: App,
  op: Operation<I, O>,
  input: z.input<I>,
  actor?: string,
): Promise<O> {
  return perform(op, { app, principal: localPrincipal(actor), signal: new AbortController().signal }, input);
}
