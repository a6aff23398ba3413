/** Executable entry point: runs the command on this process. */
import { compiledCommand } from "./compiled-command.ts";

const { processIo, runCommandLine } = compiledCommand() ?? (await import("./command.ts"));
process.exitCode = await runCommandLine(process.argv.slice(2), processIo());
