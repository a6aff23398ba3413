/** The tools behind the upstreams of the configuration: a gateway without a listener reaches them. */
import type { App } from "../app/app.ts";
import { commandReader } from "../app/operations/rollback/job-tools.ts";
import { openService, type Service } from "../app/wiring/service.ts";
import { quiet } from "../config/settings.ts";
import { Gateway } from "../gateway/gateway.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Context, Flags } from "./context.ts";

export async function withUpstreams<T>(
  { io, settings }: Pick<Context, "io" | "settings">,
  flags: Flags,
  work: (service: Service, gateway: Gateway) => Promise<T>,
): Promise<T> {
  const chosen = settings(flags);
  const service = await openService(quiet(chosen), io.clock);
  const gateway = new Gateway(service);
  try {
    if (chosen.upstreams.length > 0) await gateway.start();
    return await work(service, gateway);
  } finally {
    await gateway.close();
    await service.close();
  }
}

/**
 * Undos of this process, and looks at what is there, go through the upstreams where no compensator is configured. They
 * are connected to when the first of them is needed: a halt does not wait, and most plans need none.
 */
export async function undoingThroughUpstreams<T>(app: App, work: () => Promise<T>): Promise<T> {
  const { upstreams, rollback } = app.settings;
  if (upstreams.length === 0 || rollback.compensator_cmd !== null) return work();
  const gateway = new Gateway(app);
  const { undo } = gateway.services;
  let started: Promise<void> | undefined;
  /** Why they do not start, or null. */
  const start = () => {
    started ??= gateway.start();
    return started.then(() => null, messageOf);
  };
  const through = {
    ...undo,
    reader: commandReader(app.settings) ?? undo.reader,
    /** Asked before anything is called or read. */
    async objection(tools: readonly string[]) {
      const wrong = await start();
      return wrong === null ? undo.objection(tools) : `not tried, the upstreams do not start: ${wrong}`;
    },
    async unavailable(tool: string) {
      const wrong = await start();
      return wrong === null ? undo.unavailable(tool) : `the upstreams do not start: ${wrong}`;
    },
  };
  app.lookout = through;
  app.jobTools = { ...through, stop: app.background.signal };
  try {
    return await work();
  } finally {
    await gateway.close();
  }
}
