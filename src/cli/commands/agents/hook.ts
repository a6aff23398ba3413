/** `svc hook <client>`: answers one hook event of a coding agent. Coding agents start it, users do not. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../../child-process/package-files.ts";
import { HOOK_CLIENTS } from "../../../hook/clients/clients.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import type { CommandContext, ExitCode, RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";

export const registerHook: RegisterCommand = (program, context) => {
  const { done } = context;
  program
    .command("hook")
    .argument("<client>", `${HOOK_CLIENTS.join(", ")}, serve`)
    .description("Answer a coding agent's hook on standard input")
    .option("--settings <file>", "settings file that svc connect <client> --hooks wrote")
    .option("--managed", "use the settings of the account that runs the client")
    .option("--dir <dir>", "directory of the service's files (default: ~/.config/svc/hooks)")
    .addHelpText(
      "after",
      "\nCoding agents run this command. svc rollback uses svc hook restore and svc hook read to restore edited files.",
    )
    .action(async (client: string, flags: { settings?: string; managed?: boolean; dir?: string }) => {
      if (client === "serve") return serve(context, flags.dir);
      const { runHook } = await import("../../../hook/bin.ts");
      await runHook(
        [
          client,
          ...(flags.managed === true ? ["--managed"] : []),
          ...(flags.settings === undefined ? [] : ["--settings", flags.settings]),
          ...(flags.dir === undefined ? [] : ["--dir", resolve(context.io.cwd, flags.dir)]),
        ],
        fileURLToPath(packageFile("dist/hook/resident/start.js")),
      );
      done(process.exitCode as ExitCode);
    });
};

/** Runs the resident process in the foreground, for a service manager or to find out why it does not start. */
async function serve({ io, done }: CommandContext, dir: string | undefined): Promise<void> {
  const folder = resolve(io.cwd, dir ?? hooksFolder(io.env));
  const { serveHooks } = await import("../../../hook/resident/main.ts");
  const end = await serveHooks(folder, () => io.out(`answering the hooks of ${escapeControls(folder)}`));
  if (end === "running") io.out("a process of this version answers them already");
  done(0);
}
