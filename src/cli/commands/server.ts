/** `svc server`: the standalone server, until it is told to stop. */
import { openService } from "../../app/wiring/service.ts";
import { startServer } from "../../serve/server.ts";
import { globalOptions, HOST_OPTION, PORT_OPTION, type Register } from "../context.ts";
import { untilSignalled } from "../signals.ts";

export const registerServer: Register = (program, context) => {
  globalOptions(program.command("server").description("start the HTTP API and the console"))
    .option("--port <n>", PORT_OPTION)
    .option("--host <address>", HOST_OPTION)
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .action(async (flags: Record<string, unknown>) => {
      const service = await openService(
        context.settings(flags, ["port", "host", "policy", "keys"]),
        context.io.clock,
      );
      const listening = await startServer(service);
      context.io.err(
        `svc ${service.version} listening on ${listening.url} (store ${service.core.store.kind})`,
      );
      await untilSignalled(service);
      await listening.stop();
    });
};
