/** Commands that stand in for a compensator or a reader. */
import { tempFile } from "./tmp.ts";

/** Runs this text as its own module. */
export const nodeCommand = (text: string): string => `${process.execPath} ${tempFile("command.mjs", text)}`;

/** Reads its input to the end, and then does this. */
export const afterInput = (text: string): string =>
  nodeCommand(`process.stdin.resume().on("end", () => ${text});`);

/** A compensator that carries out every undo. */
export const undoesAll = (): string => afterInput("process.exit(0)");
