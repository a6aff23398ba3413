/** `svc hook <client>`: answers one hook event of a coding agent. Coding agents start it, users do not. */
import { HOOK_CLIENTS } from "../../../hook/clients/clients.ts";
import type { ExitCode, RegisterCommand } from "../../context.ts";

export const registerHook: RegisterCommand = (program, { done }) => {
  program
    .command("hook")
    .argument("<client>", HOOK_CLIENTS.join(", "))
    .description("Answer a coding agent's hook on standard input")
    .option("--settings <file>", "settings file that svc connect <client> --hooks wrote")
    .addHelpText(
      "after",
      "\nCoding agents run this command. svc rollback uses svc hook restore and svc hook read to restore edited files.",
    )
    .action(async (client: string, flags: { settings?: string }) => {
      const { runHook } = await import("../../../hook/bin.ts");
      await runHook([client, ...(flags.settings === undefined ? [] : ["--settings", flags.settings])]);
      done(process.exitCode as ExitCode);
    });
};
