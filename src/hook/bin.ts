/**
 * Executable behind `svc hook <client>`, which a coding agent starts for every call. It imports nothing of the service.
 * A rollback restores files with its `restore` and `read` commands.
 */
import { readSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { HOOK_CLIENTS, type HookAnswer, type HookClient, isRecord, refuseAnswer } from "./clients/clients.ts";
import { handleEvent } from "./hook.ts";
import { readRecordedState, undoRecord } from "./record/undo-record.ts";
import { forwardEvent } from "./resident/forward.ts";
import { singleCall } from "./resident/services.ts";
import { hooksFolder, readSettings } from "./settings.ts";

/** The process that started: its arguments, its environment, and the file of the resident process. */
interface HookStart {
  argv: readonly string[];
  env: NodeJS.ProcessEnv;
  resident: string;
}

async function hookMain({ argv, env, resident }: HookStart, input: string): Promise<HookAnswer> {
  const [what, ...rest] = argv;
  if (what === "restore" || what === "read") {
    const dir = rest.indexOf("--dir");
    return undo(what, input, (dir < 0 ? undefined : rest[dir + 1]) ?? hooksFolder(env));
  }
  if (!(HOOK_CLIENTS as readonly string[]).includes(what ?? ""))
    return refuseAnswer(`svc hook: unknown client; choose one of ${HOOK_CLIENTS.join(", ")}`);
  const file = settingsPath(what!, rest, env);
  const folder = dirname(resolve(file));
  // Windows has no socket that only its user can open.
  if (process.platform !== "win32" && basename(file) === `${what}.json`)
    return forwardEvent(folder, what!, input, resident);
  const call = singleCall(folder);
  try {
    return await handleEvent(what as HookClient, input, () => readSettings(file, env), call);
  } finally {
    await call.services.close();
  }
}

/** The hook of the machine finds the settings by the account alone, because a project can set `HOME`. */
function settingsPath(client: string, words: readonly string[], env: NodeJS.ProcessEnv): string {
  if (words.includes("--managed")) return join(userInfo().homedir, ".config/svc/hooks", `${client}.json`);
  const at = words.indexOf("--settings");
  return (at < 0 ? undefined : words[at + 1]) ?? join(hooksFolder(env), `${client}.json`);
}

/**
 * Handles a compensation call or a read request on stdin, in the form that `svc rollback` sends to commands. A restore
 * that leaves paths alone prints them as JSON.
 */
function undo(what: "restore" | "read", input: string, folder: string): HookAnswer {
  try {
    const given: unknown = JSON.parse(input);
    if (!isRecord(given)) throw new Error("the input is not a JSON object");
    const args = given[what === "restore" ? "args" : "arguments"];
    if (!isRecord(args)) throw new Error("the input has no arguments");
    const record = args["record"];
    if (typeof record !== "string") throw new Error("the input names no record");
    if (what === "read") return { out: JSON.stringify(readRecordedState(folder, record)), err: "", code: 0 };
    const skip = Array.isArray(given["skip"]) ? given["skip"].map(String) : [];
    const partial = undoRecord(folder, record, { skip, overwrite: given["overwrite"] === true });
    if (partial !== null) return { out: JSON.stringify(partial), err: partial.error, code: 1 };
    return { out: "", err: "", code: 0 };
  } catch (error) {
    return { out: "", err: error instanceof Error ? error.message : String(error), code: 1 };
  }
}

/** Reads synchronously, because loading a stream would cost more than reading the input. */
function standardInput(): string {
  const parts: Buffer[] = [];
  const part = Buffer.alloc(65_536);
  for (;;) {
    try {
      const bytes = readSync(0, part);
      if (bytes === 0) return Buffer.concat(parts).toString("utf8");
      parts.push(Buffer.from(part.subarray(0, bytes)));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EOF") return Buffer.concat(parts).toString("utf8");
      if (code !== "EAGAIN") throw error;
      // The client made its end of the pipe non-blocking and is still writing.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/** `resident`: the file of the resident process, which this hook starts if there is none. */
export async function runHook(argv: readonly string[], resident: string): Promise<void> {
  let answer: HookAnswer;
  try {
    answer = await hookMain({ argv, env: process.env, resident }, standardInput());
  } catch (error) {
    // Only exit code 2 refuses. After any other failure the client would make the call.
    answer = refuseAnswer(`svc: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (answer.err !== "") process.stderr.write(`${answer.err}\n`);
  if (answer.out !== "") process.stdout.write(`${answer.out}\n`);
  process.exitCode = answer.code;
}
