/** Reads witness keys from the settings: a verifier key, a file with one, or the witness's public key file. */
import { readTextFileSync } from "../../config/files.ts";
import { isVerifierKey } from "../../config/sections/operations.ts";
import { invalidError } from "../../kernel/errors.ts";
import { parsePublicKey } from "../signing.ts";
import { COSIGNATURE_TYPE, parseVerifierKey, type VerifierKey } from "./note.ts";

const MAX_KEY_BYTES = 65_536;

/** `locate` makes a path absolute. A public key file contains no name, so its cosignatures count under any name. */
export function readWitnessKey(
  given: string,
  locate: (path: string) => string = (path) => path,
): VerifierKey {
  const isText = isVerifierKey(given);
  const what = isText ? "the witness key" : locate(given);
  const text = isText ? given : readTextFileSync(what, MAX_KEY_BYTES);
  if (!isText && !isVerifierKey(text))
    return { name: null, type: COSIGNATURE_TYPE, key: parsePublicKey(text, what) };
  const key = parseVerifierKey(text, what);
  if (key.type !== COSIGNATURE_TYPE)
    throw invalidError(`${what}: is a log's key; a witness's has type 4, as svc witness serve prints it`);
  return key;
}

/** Removes duplicates, so that each key counts once. */
export function readWitnessKeys(given: readonly string[], locate?: (path: string) => string): VerifierKey[] {
  const keys = given.map((one) => readWitnessKey(one, locate));
  return [...new Map(keys.map((key) => [key.key.key_id, key])).values()];
}
