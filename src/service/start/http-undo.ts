/** Undoes and reads `http` tools by their own requests, and every other tool as configured. */

import { guardedCompensator } from "../../auth/guarded-undo.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { GuardedExchange } from "../../egress/exchange.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { openApproversGuard } from "../../operations/signing/approvers-guard.ts";
import { undoSignatures } from "../../operations/signing/signatures.ts";
import type { RequestCarrier } from "../../proxy/carry.ts";
import { CredentialVault } from "../../proxy/credentials.ts";
import { type HttpTools, httpTools } from "../../proxy/http-tools.ts";
import type { UndoToolOptions } from "../../rollback/undo/execute.ts";
import { httpRoutes } from "../../rules/http/routes.ts";

/** What carries the requests of a proxy or a rollback: private addresses only by name, credentials of the settings. */
export function requestCarrier({ egress, allow_hosts, credentials }: LoadedSettings): RequestCarrier {
  return {
    exchange: new GuardedExchange({ ...egress, block_private: true, literal: allow_hosts }),
    vault: new CredentialVault(credentials, process.env),
  };
}

/** Whether any manifest is an `http` tool. */
export const hasHttpTools = (app: ServiceApp): boolean =>
  httpRoutes(app.core.rules().manifests).origins.length > 0;

/** Runs the work with tools that make the requests of `http` tools. `others` undo and read the rest. */
export async function withHttpUndos<T>(
  app: ServiceApp,
  others: UndoToolOptions | null,
  work: (tools: UndoToolOptions) => Promise<T>,
): Promise<T> {
  // Without a reader, an undo stays unverified. That must not become a read that fails.
  if (others !== null && !hasHttpTools(app)) return work(others);
  const manifests = () => app.core.rules().manifests;
  const carrier = requestCarrier(app.settings);
  const own = httpTools(carrier, manifests);
  const guard = await openApproversGuard(app);
  const isOwn = (tool: string) => httpRoutes(manifests()).ofTool(tool) !== undefined;
  try {
    const compensator = guardedCompensator(
      () => guard,
      (run_id, step) => undoSignatures(app, run_id, step),
      own.compensator,
    );
    return await work(eachByItsOwn({ ...own, compensator }, others, isOwn));
  } finally {
    carrier.exchange.close();
  }
}

function eachByItsOwn(
  own: HttpTools,
  others: UndoToolOptions | null,
  isOwn: (tool: string) => boolean,
): UndoToolOptions {
  const nobody = (tool: string) =>
    new Error(`${tool} has no http manifest, and no other way to call it is configured`);
  return {
    ...others,
    compensator: async (call, signal) => {
      if (isOwn(call.tool)) return own.compensator(call, signal);
      if (others === null) throw nobody(call.tool);
      return others.compensator(call, signal);
    },
    reader: async (request, signal, run_id) => {
      if (isOwn(request.tool)) return own.reader(request, signal, run_id);
      if (others?.reader == null) throw nobody(request.tool);
      return others.reader(request, signal, run_id);
    },
    objection: async (tools) => (await others?.objection?.(tools.filter((tool) => !isOwn(tool)))) ?? null,
  };
}
