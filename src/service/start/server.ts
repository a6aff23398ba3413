/** Runs the standalone server: the HTTP surface of a service, listening. */
import { keyFileOf } from "../../config/settings.ts";
import { type ConsoleDeps, mountConsole } from "../../console/mount.ts";
import { type ListeningServer, startListening } from "../../http/lifecycle.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { RunningService } from "../service.ts";
import { httpOf } from "./http.ts";
import { runServerProbe } from "./probe.ts";

export async function startServer(
  service: RunningService,
  { link }: Pick<ConsoleDeps, "link"> = {},
): Promise<ListeningServer> {
  const { settings, auth, log } = service;
  if (keyFileOf(settings) === null && settings.oidc.issuer === null)
    log.warn(
      "no keys and no OIDC issuer are configured: every request will be refused; create a key with svc keys add and name its file with --keys or SVC_KEYS",
    );
  const server = httpOf(service);
  try {
    mountConsole(server, { app: service, auth, link });
    const { interval_ms } = settings.probe;
    if (interval_ms > 0) service.background.every(interval_ms, "probing", () => runServerProbe(service));
    const listening = await startListening(server, settings.listen.host, settings.listen.port);
    service.bound_port = listening.port;
    return {
      ...listening,
      async stop() {
        const until = performance.now() + SERVICE_LIMITS.stop_ms;
        await listening.stop();
        await service.close(until);
      },
    };
  } catch (error) {
    await service.close();
    throw error;
  }
}
