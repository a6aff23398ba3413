/** `svc kill-switch on|off <file>`: creates or removes the file that blocks all new calls. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { invalidError } from "../../../kernel/errors.ts";
import type { RegisterCommand } from "../../context.ts";

export const registerKillSwitch: RegisterCommand = (program, { io, isRemote }) => {
  program
    .command("kill-switch")
    .argument("<state>", "on creates the file, off removes it")
    .argument("<file>", "the kill-switch file")
    .description("Create or remove the kill-switch file")
    .option("--reason <text>", "reason shown with blocked calls", "")
    .action((state: string, file: string, flags: Record<string, string>) => {
      if (isRemote(flags))
        throw invalidError(
          "kill-switch: works on local files; to halt a server, use svc halt add --server <url>",
        );
      if (state !== "on" && state !== "off")
        throw invalidError(`kill-switch: must be on or off, not ${JSON.stringify(state)}`);
      if (state === "on") {
        writeFileSync(file, flags["reason"] ? `${flags["reason"]}\n` : "", { mode: 0o644 });
        return io.out(`kill switch on: ${file}`);
      }
      const was = existsSync(file);
      rmSync(file, { force: true });
      io.out(was ? `kill switch off: ${file}` : `kill switch was not on: ${file}`);
    });
};
