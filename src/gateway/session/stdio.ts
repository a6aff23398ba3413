/** The gateway as one unauthenticated session on standard input and output. */
import type { Readable, Writable } from "node:stream";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { RunningService } from "../../service/service.ts";
import { type GatewayOptions, McpGateway } from "../gateway.ts";
import { AgentPeer } from "./agent-server.ts";
import { StrictStdio } from "./strict-stdio.ts";

interface StdioOptions extends GatewayOptions {
  run_id?: string | undefined;
  input: Readable;
  output: Writable;
}

interface StdioGateway {
  gateway: McpGateway;
  /** Resolves when the client disconnects. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

export async function startStdioGateway(
  service: RunningService,
  options: StdioOptions,
): Promise<StdioGateway> {
  const gateway = new McpGateway(service);
  try {
    const principal = stdioPrincipal(service);
    const named =
      options.run_id === undefined
        ? undefined
        : await gateway.runs.named(principal, options.run_id, "--run-id");
    // The process counts as the session in every protocol revision.
    const run = named === undefined ? gateway.runs.ofSession() : () => named;
    await gateway.start(options.patience_ms);
    const wire = new StrictStdio(options.input, options.output);
    let left: () => void = () => {};
    const handle = serveStdio(
      ({ era }) => {
        const peer = new AgentPeer(gateway, { local: principal, run, named: named !== undefined, era });
        const leave = gateway.notices.join(peer);
        peer.server.onclose = () => {
          leave();
          peer.close();
        };
        return peer.server;
      },
      {
        transport: wire,
        onerror: (error) => service.log.debug("session oddity", { problem: error.message }),
      },
    );
    const ended = new Promise<void>((resolve) => {
      left = resolve;
    });
    const closed = wire.onclose;
    wire.onclose = () => {
      closed?.();
      left();
    };
    const stop = async () => {
      await handle.close();
      await gateway.close();
      await service.close();
    };
    return { gateway, ended, stop };
  } catch (error) {
    await gateway.close();
    await service.close();
    throw error;
  }
}

/** The user who started the process, the only client on its input. */
function stdioPrincipal({ settings }: RunningService): CallerPrincipal {
  const { actor, tenant } = settings;
  return {
    id: `stdio:${actor}`,
    name: actor,
    roles: ["agent"],
    groups: [],
    tenant,
    max_permissions: ["*"],
    allow_observe: true,
  };
}
