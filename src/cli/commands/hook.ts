/** `svc hook <client>`: answers one event of a coding agent's hook. Coding agents start it, people do not. */
import { HOOK_CLIENTS } from "../../hook/clients.ts";
import type { Exit, Register } from "../context.ts";

export const registerHook: Register = (program, { done }) => {
  program
    .command("hook <client>")
    .description(`answer a coding agent's hook, on standard input: ${HOOK_CLIENTS.join(", ")}`)
    .option(
      "--settings <file>",
      "where the service is and with which key; svc connect <client> --hooks writes it",
    )
    .addHelpText(
      "after",
      "\nsvc hook restore and svc hook read are the commands with which svc rollback puts edited files back.",
    )
    .action(async (client: string, flags: { settings?: string }) => {
      const { runHook } = await import("../../hook/bin.ts");
      await runHook([client, ...(flags.settings === undefined ? [] : ["--settings", flags.settings])]);
      done(process.exitCode as Exit);
    });
};
