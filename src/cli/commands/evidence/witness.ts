/** `svc witness serve`: runs a witness for other logs until a signal stops it. */
import { resolve } from "node:path";
import { readTextFileSync } from "../../../config/files.ts";
import { isVerifierKey } from "../../../config/sections/operations.ts";
import { readSigningKey } from "../../../evidence/key-files.ts";
import { parsePublicKey } from "../../../evidence/signing.ts";
import { logKey } from "../../../evidence/witness/checkpoint.ts";
import { isKeyName, parseVerifierKey, type VerifierKey } from "../../../evidence/witness/note.ts";
import { WitnessState } from "../../../evidence/witness/state.ts";
import { LogWitness } from "../../../evidence/witness/witness.ts";
import { startListening } from "../../../http/lifecycle.ts";
import { createWitnessServer } from "../../../http/routes/witness.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { RegisterCommand } from "../../context.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import { untilSignalled } from "../../signals.ts";
import { collectValues } from "./verify-bundle.ts";

interface ServeFlags {
  state: string;
  key: string;
  log: string[];
  port: string;
  host: string;
  name?: string;
}

const PORT = "8790";
const MAX_KEY_BYTES = 65_536;

export const registerWitness: RegisterCommand = (program, { io }) => {
  const group = program.command("witness").description("Cosign checkpoints of other ledgers");
  group
    .command("serve")
    .description("Serve the C2SP tlog-witness protocol")
    .requiredOption("--state <dir>", "directory of cosigned checkpoints; never delete it")
    .requiredOption("--key <file>", "private key for this witness only (svc keygen creates one)")
    .requiredOption("--log <origin=file>", "a log and its public key; repeatable", collectValues)
    .option("--port <n>", "port to listen on; 0 means any free port", PORT)
    .option("--host <address>", "address to bind", "127.0.0.1")
    .option("--name <name>", "the witness's name (default: svc-witness/<key id>)")
    .action(async (flags: ServeFlags) => {
      const port = Number(flags.port);
      if (!/^\d{1,5}$/.test(flags.port) || port > 65_535)
        throw invalidError("--port: must be a number from 0 to 65535");
      const key = readSigningKey(resolve(io.cwd, flags.key));
      const name = flags.name ?? `svc-witness/${key.key_id}`;
      if (!isKeyName(name))
        throw invalidError("--name: must have neither spaces nor plus signs, such as example.com/w1");
      const logs = readLogs(flags.log, io);
      const state = new WitnessState(resolve(io.cwd, flags.state));
      try {
        const witness = new LogWitness({ name, key, logs, state, now: () => io.clock.now() });
        const server = createWitnessServer(witness, (error) =>
          io.err(`error: ${escapeControls(error.message)}`),
        );
        const listening = await startListening(server, flags.host, port);
        io.err(
          `svc witness ${escapeControls(name)} listening on ${listening.url} for ${formatCountOf(logs.size, "log")}`,
        );
        io.out(witness.verifierKey);
        await untilSignalled({
          reload: () => Promise.reject(new Error("a witness reads its logs at the start")),
        });
        await listening.stop();
      } finally {
        state.close();
      }
    });
};

function readLogs(given: readonly string[], io: CommandIo): Map<string, VerifierKey[]> {
  const logs = new Map<string, VerifierKey[]>();
  for (const text of given) {
    const at = text.indexOf("=");
    const origin = text.slice(0, Math.max(0, at));
    if (origin === "" || at === text.length - 1)
      throw invalidError(
        "--log: must be <origin>=<public key file>, such as svc/0123456789abcdef=ledger.pub",
      );
    const path = resolve(io.cwd, text.slice(at + 1));
    const pem = readTextFileSync(path, MAX_KEY_BYTES);
    const key = isVerifierKey(pem) ? parseVerifierKey(pem, path) : logKey(origin, parsePublicKey(pem, path));
    logs.set(origin, [...(logs.get(origin) ?? []), key]);
  }
  return logs;
}
