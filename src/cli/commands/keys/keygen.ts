/** `svc keygen <prefix>`: creates a signing key pair. Never overwrites existing files. */
import { resolve } from "node:path";
import { writeKeyFiles } from "../../../evidence/key-files.ts";
import type { RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";

export const registerKeygen: RegisterCommand = (program, { io }) => {
  program
    .command("keygen")
    .argument("<prefix>", "writes <prefix>.key (private) and <prefix>.pub (public)")
    .description("Create an Ed25519 signing key pair")
    .action(async (prefix: string) => {
      const { private_file, public_file, key_id } = await writeKeyFiles(resolve(io.cwd, prefix));
      io.out(`private key: ${escapeControls(private_file)} (only you can read it; keep it secret)`);
      io.out(`public key:  ${escapeControls(public_file)} (give it to anyone who verifies)`);
      io.out(`key id:      ${key_id}`);
    });
};
