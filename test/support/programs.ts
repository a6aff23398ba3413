/**
 * A program that a test needs besides Node. Ask at the top of the file that starts it (`const PYTHON = await
 * program("python3")`): installing has no time limit, and if it fails, that file reports it once.
 */
import { ensureProgram, type Program } from "../../scripts/programs.mjs";
import { askBroker, hasBroker } from "./broker.ts";

/** Its path. The first worker that asks has it installed if it is missing; the others wait for that. */
export function program(name: Program): Promise<string> {
  return hasBroker() ? askBroker(name) : ensureProgram(name);
}
