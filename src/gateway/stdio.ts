/** The gateway as one unauthenticated session on standard input and output. */
import type { Readable, Writable } from "node:stream";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Service } from "../app/wiring/service.ts";
import type { Principal } from "../model/roles.ts";
import { AgentPeer } from "./agent.ts";
import { Gateway, type GatewayOptions } from "./gateway.ts";
import { StrictStdio } from "./strict-stdio.ts";

interface StdioOptions extends GatewayOptions {
  run_id?: string | undefined;
  input: Readable;
  output: Writable;
}

interface StdioGateway {
  gateway: Gateway;
  /** Resolves when the client has gone. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

export async function startStdioGateway(service: Service, options: StdioOptions): Promise<StdioGateway> {
  const gateway = new Gateway(service);
  try {
    const principal = stdioPrincipal(service);
    const named =
      options.run_id === undefined
        ? undefined
        : await gateway.runs.named(principal, options.run_id, "--run-id");
    // Whichever revision the client speaks: the process is its session.
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

/** Whoever started the process: no other client is on its input. */
function stdioPrincipal({ settings }: Service): Principal {
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
