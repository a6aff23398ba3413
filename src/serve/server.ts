/** The standalone server: the HTTP surface over a service, listening. */
import type { Service } from "../app/wiring/service.ts";
import { keyFileOf } from "../config/settings.ts";
import { type ConsoleParts, mountConsole } from "../console/mount.ts";
import { type Listening, listen } from "../http/lifecycle.ts";
import { LIMITS } from "../kernel/limits.ts";
import { httpOf } from "./http.ts";
import { probe } from "./probe.ts";

export async function startServer(
  service: Service,
  { link }: Pick<ConsoleParts, "link"> = {},
): Promise<Listening> {
  const { settings, auth, log } = service;
  if (keyFileOf(settings) === null && settings.oidc.issuer === null)
    log.warn("no keys and no OIDC issuer are configured: every request will be refused");
  const server = httpOf(service);
  try {
    mountConsole(server, { app: service, auth, link });
    const { interval_ms } = settings.probe;
    if (interval_ms > 0) service.background.every(interval_ms, "probing", () => probe(service));
    const listening = await listen(server, settings.listen.host, settings.listen.port);
    return {
      ...listening,
      async stop() {
        const until = performance.now() + LIMITS.stop_ms;
        await listening.stop();
        await service.close(until);
      },
    };
  } catch (error) {
    await service.close();
    throw error;
  }
}
