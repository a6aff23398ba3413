/** `svc console`: serves the console for local data, without a login, to users of this machine. */
import { invalidError } from "../../../kernel/errors.ts";
import { openHttpService } from "../../../service/start/http-undo.ts";
import { startServer } from "../../../service/start/server.ts";
import { type CommandFlags, globalOptions, PORT_OPTION, type RegisterCommand } from "../../context.ts";
import { untilSignalled } from "../../signals.ts";

const OWN = ["port", "host", "role", "console", "policy"];

export const registerConsole: RegisterCommand = (program, context) => {
  globalOptions(program.command("console").description("Open the console on this machine, without a login"))
    .option("--port <n>", PORT_OPTION)
    .option("--role <role>", "auditor, approver or operator; never admin (default: operator)")
    .option("--policy <file>", "policy file")
    .action(async (flags: CommandFlags) => {
      if (context.isRemote(flags))
        throw invalidError("svc console shows local data; a server has its own console at <url>/console");
      const listening = await start({ ...flags, console: "open", host: "127.0.0.1" });
      context.io.out(`console on ${listening.url}/console`);
      context.io.err("anyone on this machine can use it; press Ctrl-C to stop it");
      await untilSignalled(listening);
      await listening.stop();
    });

  /** If the default port is in use and the user did not choose one, takes any free port. */
  async function start(flags: CommandFlags) {
    try {
      return await serve(flags);
    } catch (error) {
      if (flags["port"] !== undefined || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      return await serve({ ...flags, port: "0" });
    }
  }

  async function serve(flags: CommandFlags) {
    const service = await openHttpService(context.settings(flags, OWN), context.io.clock);
    return { ...(await startServer(service)), reload: () => service.reload() };
  }
};
