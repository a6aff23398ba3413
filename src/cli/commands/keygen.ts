/** `svc keygen <prefix>`: a new pair of signing keys, never over old ones. */
import { resolve } from "node:path";
import { writeKeyFiles } from "../../evidence/key-files.ts";
import type { Register } from "../context.ts";
import { printable } from "../io.ts";

export const registerKeygen: Register = (program, { io }) => {
  program
    .command("keygen <prefix>")
    .description("make an Ed25519 key pair: <prefix>.key (private) and <prefix>.pub")
    .action(async (prefix: string) => {
      const { private_file, public_file, key_id } = await writeKeyFiles(resolve(io.cwd, prefix));
      io.out(`private key: ${printable(private_file)} (only you can read it; keep it so)`);
      io.out(`public key:  ${printable(public_file)} (give it to whoever verifies)`);
      io.out(`key id:      ${key_id}`);
    });
};
