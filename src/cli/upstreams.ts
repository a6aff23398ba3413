/** The tools behind the upstreams of the configuration: a gateway without a listener reaches them. */
import { openService, type Service } from "../app/wiring/service.ts";
import { Gateway } from "../gateway/gateway.ts";
import type { Context, Flags } from "./context.ts";

export async function withUpstreams<T>(
  { io, settings }: Pick<Context, "io" | "settings">,
  flags: Flags,
  work: (service: Service, gateway: Gateway) => Promise<T>,
): Promise<T> {
  const chosen = settings(flags);
  const service = await openService(chosen, io.clock);
  const gateway = new Gateway(service);
  try {
    if (chosen.upstreams.length > 0) await gateway.start();
    return await work(service, gateway);
  } finally {
    await gateway.close();
    await service.close();
  }
}
