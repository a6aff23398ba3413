/** Waits for a stop signal: SIGTERM and SIGINT stop, SIGHUP reloads. A second stop signal exits at once. */
import type { RunningService } from "../service/service.ts";

export function untilSignalled(service: Pick<RunningService, "reload">): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (signal: NodeJS.Signals) => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    // A rejected reload changes nothing, and the service logs it.
    process.on("SIGHUP", () => void service.reload().catch(() => {}));
  });
}
