/** Where a document goes that a command was asked for: the terminal, or the file that was named. */
import { resolve } from "node:path";
import { writeOutFile } from "../evidence/out-file.ts";
import { bytesOf, partsOf } from "./door.ts";
import { type Io, printable } from "./io.ts";

export async function tellOrWrite(io: Io, document: object, out: string | undefined): Promise<void> {
  if (out === undefined) {
    for await (const part of partsOf(document)) await io.write(part);
    return;
  }
  const path = resolve(io.cwd, out);
  await writeOutFile(path, bytesOf(document));
  io.out(`wrote ${printable(path)}`);
}
