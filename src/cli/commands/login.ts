/** `svc login <url>`: keeps the key for a server where only its owner can read it. */
import { listRuns } from "../../app/operations/runs.ts";
import { status } from "../../app/operations/status.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import type { Register } from "../context.ts";
import { remoteDoor, requireServerUrl } from "../door.ts";
import { keepKey, keptKeysFile } from "../kept-keys.ts";

export const registerLogin: Register = (program, context) => {
  const { io } = context;
  program
    .command("login <url>")
    .description("keep the key for a server: read from standard input, or SVC_TOKEN")
    .action(async (url: string) => {
      requireServerUrl(url, "url");
      const key = (io.env["SVC_TOKEN"] ?? (await standardInput())).trim();
      if (!/^[\x21-\x7e]+$/.test(key))
        throw invalid("which key? send it on standard input (svc login <url> < key), or set SVC_TOKEN");
      await tryKey(url, key);
      keepKey(io.env, url, key);
      io.out(
        `the key for ${new URL(url).origin} is kept in ${keptKeysFile(io.env)}; use svc --server ${url}`,
      );
    });

  /** Kept only once the server took it. */
  async function tryKey(url: string, key: string): Promise<void> {
    const door = await remoteDoor({ url, key }, io.clock);
    try {
      await door.perform(status, {}).catch(async (error: unknown) => {
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
