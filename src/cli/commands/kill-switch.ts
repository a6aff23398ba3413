/** `svc kill-switch on|off <file>`: makes or removes the file that stops every new call. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { invalid } from "../../kernel/errors.ts";
import type { Register } from "../context.ts";

export const registerKillSwitch: Register = (program, { io, isRemote }) => {
  program
    .command("kill-switch <state> <file>")
    .description("on: make the kill-switch file; off: remove it")
    .option("--reason <text>", "what blocked calls are told", "")
    .action((state: string, file: string, flags: Record<string, string>) => {
      if (isRemote(flags))
        throw invalid(
          "kill-switch: the file is on this machine; what stops a server is svc halt --server <url>",
        );
      if (state !== "on" && state !== "off")
        throw invalid(`kill-switch: ${JSON.stringify(state)} is neither on nor off`);
      if (state === "on") {
        writeFileSync(file, flags["reason"] ? `${flags["reason"]}\n` : "", { mode: 0o644 });
        return io.out(`kill switch on: ${file}`);
      }
      const was = existsSync(file);
      rmSync(file, { force: true });
      io.out(was ? `kill switch off: ${file}` : `kill switch was not on: ${file}`);
    });
};
