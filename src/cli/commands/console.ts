/** `svc console`: the console over a data folder, without a login, for whoever sits at this machine. */
import { openService } from "../../app/wiring/service.ts";
import { invalid } from "../../kernel/errors.ts";
import { startServer } from "../../serve/server.ts";
import { type Flags, globalOptions, PORT_OPTION, type Register } from "../context.ts";
import { untilSignalled } from "../signals.ts";

const OWN = ["port", "host", "role", "console", "policy"];

export const registerConsole: Register = (program, context) => {
  globalOptions(program.command("console").description("open the console on this machine, without a login"))
    .option("--port <n>", PORT_OPTION)
    .option("--role <role>", "auditor, approver or operator; never admin (default: operator)")
    .option("--policy <file>", "policy file")
    .action(async (flags: Flags) => {
      if (context.isRemote(flags))
        throw invalid(
          "a server has its own console, at <url>/console: this one is over the data of this machine",
        );
      const listening = await start({ ...flags, console: "open", host: "127.0.0.1" });
      context.io.out(`console on ${listening.url}/console`);
      context.io.err("everybody on this machine can use it; Ctrl-C stops it");
      await untilSignalled(listening);
      await listening.stop();
    });

  /** A server on the usual port may be running already; without a port of one's own, any free one will do. */
  async function start(flags: Flags) {
    try {
      return await serve(flags);
    } catch (error) {
      if (flags["port"] !== undefined || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      return await serve({ ...flags, port: "0" });
    }
  }

  async function serve(flags: Flags) {
    const service = await openService(context.settings(flags, OWN), context.io.clock);
    return { ...(await startServer(service)), reload: () => service.reload() };
  }
};
