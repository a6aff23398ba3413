/** Prints a list as one JSON document with one entry per line. The entries are streamed, so a list may be of any length. */
import type { CommandIo } from "./io.ts";

export async function printJsonList(
  io: CommandIo,
  name: string,
  pages: AsyncIterable<readonly object[]>,
): Promise<void> {
  let before = `{${JSON.stringify(name)}:[`;
  for await (const page of pages) {
    for (const entry of page) {
      await io.write(`${before}\n${JSON.stringify(entry)}`);
      before = ",";
    }
  }
  await io.write(before === "," ? "\n]}\n" : `${before}]}\n`);
}
