/** Prints a document, or writes it to the file that the user named. */
import { resolve } from "node:path";
import { writeOutFile } from "../evidence/atomic-file.ts";
import { type CommandIo, escapeControls } from "./io.ts";
import { documentBytes, documentChunks } from "./operation-client.ts";

export async function printOrWrite(io: CommandIo, document: object, out: string | undefined): Promise<void> {
  if (out === undefined) {
    for await (const part of documentChunks(document)) await io.write(part);
    return;
  }
  const path = resolve(io.cwd, out);
  await writeOutFile(path, documentBytes(document));
  io.out(`wrote ${escapeControls(path)}`);
}
