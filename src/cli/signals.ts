/** Waiting for the end: SIGTERM and SIGINT stop, SIGHUP reloads. A second signal ends at once. */
export function untilSignalled(onHangup: () => Promise<void>): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (signal: NodeJS.Signals) => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    process.on("SIGHUP", () => void onHangup());
  });
}
