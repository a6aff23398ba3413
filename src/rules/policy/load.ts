/** Reads a policy file. Returns all problems with their positions, or a document that can be compiled. */
import { readYaml } from "../yaml.ts";
import { lintPolicy } from "./lint.ts";
import { type PolicyDoc, policySchema } from "./schema.ts";

export function loadPolicy(text: string, file: string): PolicyDoc {
  return readYaml(text, file, policySchema, lintPolicy);
}
