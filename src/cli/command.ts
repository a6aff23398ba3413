/** What the executable runs, as modules or as the compiled script. */
export { processIo } from "./io.ts";
export { runCommandLine } from "./main.ts";
