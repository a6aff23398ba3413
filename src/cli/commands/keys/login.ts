/** `svc login <url>`: stores a server's key in a file that only its owner can read. */
import { invalidError, SvcError } from "../../../kernel/errors.ts";
import { listRuns } from "../../../operations/runs/runs.ts";
import { getStatus } from "../../../operations/status.ts";
import type { RegisterCommand } from "../../context.ts";
import { storedKeysFile, storeKeyFor } from "../../credential-store.ts";
import { remoteClient, requireServerUrl } from "../../operation-client.ts";

export const registerLogin: RegisterCommand = (program, context) => {
  const { io } = context;
  program
    .command("login <url>")
    .description("Store the key for a server")
    .addHelpText("after", "\nThe key is read from standard input, or from SVC_TOKEN.")
    .action(async (url: string) => {
      requireServerUrl(url, "url");
      const key = (io.env["SVC_TOKEN"] ?? (await standardInput())).trim();
      if (!/^[\x21-\x7e]+$/.test(key))
        throw invalidError("no key: send it on standard input (svc login <url> < key), or set SVC_TOKEN");
      await tryKey(url, key);
      storeKeyFor(io.env, url, key);
      io.out(
        `stored the key for ${new URL(url).origin} in ${storedKeysFile(io.env)}; use it with svc --server ${url}`,
      );
    });

  /** Throws unless the server accepts the key. */
  async function tryKey(url: string, key: string): Promise<void> {
    const door = await remoteClient({ url, key }, io.clock);
    try {
      await door.perform(getStatus, {}).catch(async (error: unknown) => {
        if (!(error instanceof SvcError) || error.code !== "forbidden") throw error;
        await door.perform(listRuns, { limit: 1 });
      });
    } finally {
      await door.close();
    }
  }
};

async function standardInput(): Promise<string> {
  let text = "";
  for await (const part of process.stdin.setEncoding("utf8")) text += part;
  return text;
}
