/** Connects to the configured upstreams for commands, through a gateway that does not listen. */

import { withQuietLog } from "../config/settings.ts";
import { McpGateway } from "../gateway/gateway.ts";
import { messageOf } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import { commandReader } from "../operations/rollback/job-tools.ts";
import { openService, type RunningService } from "../service/service.ts";
import { httpJobTools } from "../service/start/http-undo.ts";
import type { CommandContext, CommandFlags } from "./context.ts";

export async function withUpstreams<T>(
  { io, settings }: Pick<CommandContext, "io" | "settings">,
  flags: CommandFlags,
  work: (service: RunningService, gateway: McpGateway) => Promise<T>,
): Promise<T> {
  const chosen = settings(flags);
  const service = await openService(withQuietLog(chosen), io.clock);
  const gateway = new McpGateway(service);
  try {
    if (chosen.upstreams.length > 0) await gateway.start();
    return await work(service, gateway);
  } finally {
    await gateway.close();
    await service.close();
  }
}

/**
 * Routes undos and state reads of this process through the upstreams, unless a compensator is configured. Connects when
 * the first of them is needed, because a halt must not wait and most plans need none.
 */
export async function withUpstreamUndos<T>(app: ServiceApp, work: () => Promise<T>): Promise<T> {
  const { upstreams, rollback } = app.settings;
  if (upstreams.length === 0 || rollback.compensator_cmd !== null) return work();
  const gateway = new McpGateway(app);
  const { undo } = gateway.services;
  let started: Promise<void> | undefined;
  /** Starts the gateway once. Resolves to the error message, or null. */
  const start = () => {
    started ??= gateway.start();
    return started.then(() => null, messageOf);
  };
  const through = {
    ...undo,
    reader: commandReader(app.settings) ?? undo.reader,
    /** Checked before anything is called or read. */
    async objection(tools: readonly string[]) {
      const wrong = await start();
      return wrong === null ? undo.objection(tools) : `not tried, the upstreams do not start: ${wrong}`;
    },
    async unavailable(tool: string) {
      const wrong = await start();
      return wrong === null ? undo.unavailable(tool) : `the upstreams do not start: ${wrong}`;
    },
  };
  const tools = httpJobTools(app, { ...through, stop: app.background.signal })!;
  app.stateReader = { reader: tools.reader!, objection: tools.objection };
  app.jobTools = tools;
  try {
    return await work();
  } finally {
    await gateway.close();
  }
}
