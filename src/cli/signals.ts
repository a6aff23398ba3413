/** Waiting for the end: SIGTERM and SIGINT stop, SIGHUP reloads. A second signal ends at once. */
import type { Service } from "../app/wiring/service.ts";

export function untilSignalled(service: Pick<Service, "reload">): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (signal: NodeJS.Signals) => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    // A reload that is refused changes nothing, and the service logs it.
    process.on("SIGHUP", () => void service.reload().catch(() => {}));
  });
}
