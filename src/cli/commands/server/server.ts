/** `svc server`: runs the standalone server until a signal stops it. */
import { storeKind } from "../../../operations/status.ts";
import { openHttpService } from "../../../service/start/http-undo.ts";
import { startServer } from "../../../service/start/server.ts";
import { globalOptions, HOST_OPTION, PORT_OPTION, type RegisterCommand } from "../../context.ts";
import { untilSignalled } from "../../signals.ts";

export const registerServer: RegisterCommand = (program, context) => {
  globalOptions(program.command("server").description("Start the HTTP API and the console"))
    .option("--port <n>", PORT_OPTION)
    .option("--host <address>", HOST_OPTION)
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .action(async (flags: Record<string, unknown>) => {
      const service = await openHttpService(
        context.settings(flags, ["port", "host", "policy", "keys"]),
        context.io.clock,
      );
      const listening = await startServer(service);
      context.io.err(`svc ${service.version} listening on ${listening.url} (store ${storeKind(service)})`);
      await untilSignalled(service);
      await listening.stop();
    });
};
