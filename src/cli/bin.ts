/** Executable entry point: runs the command on this process. */
import { processIo } from "./io.ts";
import { runCommandLine } from "./main.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), processIo());
