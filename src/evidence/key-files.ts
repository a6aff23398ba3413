/** Key files: created once, never overwritten, with a private half that only its owner can read. */
import { open, rm } from "node:fs/promises";
import { fileError, readTextFileSync } from "../config/files.ts";
import { conflictError } from "../kernel/errors.ts";
import { newKeyPair, type PublicKey, parsePublicKey, parseSigningKey, type SigningKey } from "./signing.ts";

const MAX_KEY_BYTES = 65_536;

interface KeyFiles {
  private_file: string;
  public_file: string;
  key_id: string;
}

/** Writes `<prefix>.key` (mode 0600) and `<prefix>.pub`. Throws if either exists. */
export async function writeKeyFiles(prefix: string): Promise<KeyFiles> {
  const pair = newKeyPair();
  const files = { private_file: `${prefix}.key`, public_file: `${prefix}.pub`, key_id: pair.key_id };
  await create(files.private_file, pair.private_pem, 0o600);
  try {
    await create(files.public_file, pair.public_pem, 0o644);
  } catch (error) {
    // Remove the private half just created: half a pair would only confuse.
    await rm(files.private_file, { force: true });
    throw error;
  }
  return files;
}

async function create(path: string, text: string, mode: number): Promise<void> {
  try {
    const handle = await open(path, "wx", mode);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      throw conflictError(
        "file_exists",
        `${path} exists already, and a key is never overwritten; choose another prefix`,
      );
    }
    throw fileError(path, error);
  }
}

export function readSigningKey(path: string): SigningKey {
  return parseSigningKey(readTextFileSync(path, MAX_KEY_BYTES), path);
}

/** Keys that the verifier trusts, by id. */
export type TrustedKeys = ReadonlyMap<string, PublicKey>;

export function readTrustedKeys(paths: readonly string[]): TrustedKeys {
  const keys = paths.map((path) => parsePublicKey(readTextFileSync(path, MAX_KEY_BYTES), path));
  return new Map(keys.map((key) => [key.key_id, key]));
}
