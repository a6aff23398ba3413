/** Undoes and reads `http` tools by their own requests, and every other tool as configured. */

import type { LoadedSettings } from "../../config/settings.ts";
import { GuardedExchange } from "../../egress/exchange.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { guardedUndo } from "../../operations/signing/approvers-guard.ts";
import type { RequestCarrier } from "../../proxy/carry.ts";
import { CredentialVault } from "../../proxy/credentials.ts";
import { httpTools } from "../../proxy/http-tools.ts";
import type { JobTools } from "../../rollback/job.ts";
import type { UndoToolOptions } from "../../rollback/undo/execute.ts";
import { httpRoutes } from "../../rules/http/routes.ts";
import { openService } from "../service.ts";

/** What carries the requests of a proxy or a rollback: private addresses only by name, credentials of the settings. */
export function requestCarrier({ egress, allow_hosts, credentials, proxy }: LoadedSettings): RequestCarrier {
  return {
    exchange: new GuardedExchange({ ...egress, block_private: true, literal: allow_hosts }, proxy),
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
  if (others !== null && !hasHttpTools(app)) return work(others);
  const carrier = requestCarrier(app.settings);
  try {
    return await work(eachByItsOwn(app, carrier, others));
  } finally {
    carrier.exchange.close();
  }
}

/** The same for the jobs of a process. Without `http` tools, `others` stay as they are. */
export function httpJobTools(
  app: ServiceApp,
  others: JobTools | null,
  today: JobTools["today"] = others?.today,
): JobTools | null {
  if (!hasHttpTools(app)) return others;
  const carrier = requestCarrier(app.settings);
  const { signal } = app.background;
  signal.addEventListener("abort", () => carrier.exchange.close(), { once: true });
  const { unavailable } = httpTools(carrier, () => app.core.rules().manifests);
  return {
    ...eachByItsOwn(app, carrier, others),
    own_reader: true,
    stop: signal,
    today,
    unavailable: async (tool, use) => {
      if ((await unavailable(tool)) === null) return null;
      return others === null ? noWay(tool) : ((await others.unavailable?.(tool, use)) ?? null);
    },
  };
}

/** A service whose jobs make the requests of `http` tools. */
export const openHttpService: typeof openService = (settings, env, options = {}) =>
  openService(settings, env, {
    ...options,
    equip: (app, tools) => httpJobTools(app, tools, app.core.today),
  });

const noWay = (tool: string): string =>
  `${tool} has no http manifest, and no other way to call it is configured`;

function eachByItsOwn(
  app: ServiceApp,
  carrier: RequestCarrier,
  others: UndoToolOptions | null,
): UndoToolOptions {
  const manifests = () => app.core.rules().manifests;
  const own = httpTools(carrier, manifests);
  const compensate = guardedUndo(app, own.compensator);
  const isOwn = (tool: string) => httpRoutes(manifests()).ofTool(tool) !== undefined;
  const reader = others?.reader ?? null;
  return {
    ...others,
    compensator: async (call, signal) => {
      if (isOwn(call.tool)) return compensate(call, signal);
      if (others === null) throw new Error(noWay(call.tool));
      return others.compensator(call, signal);
    },
    reader: async (request, signal, run_id) => {
      if (isOwn(request.tool)) return own.reader(request, signal, run_id);
      if (reader === null) throw new Error(noWay(request.tool));
      return reader(request, signal, run_id);
    },
    // Without another reader, the undos of other tools stay unverified.
    reads: (tool) => reader !== null || isOwn(tool),
    objection: async (tools) => (await others?.objection?.(tools.filter((tool) => !isOwn(tool)))) ?? null,
  };
}
