/** Whether the program of a command line can be started, without starting it. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { splitCommand } from "./split-command.ts";

/** The first word of the command if no program of that name can be started from here, else null. */
export function missingProgram(command: string, path = process.env["PATH"] ?? ""): string | null {
  const [program = ""] = splitCommand(command);
  // There the endings that a program can have are the system's matter.
  if (process.platform === "win32") return null;
  const places =
    isAbsolute(program) || program.includes("/")
      ? [resolve(program)]
      : path.split(delimiter).map((folder) => join(folder, program));
  return places.some(isProgram) ? null : program;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
