/** `node stress/run.mjs fault|sim|attack|plant|prove|escape [options]`: runs a proof, compiled. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compiledFolder } from "./compiled.mjs";

/** The folder of each proof. */
const PROOFS = {
  fault: "fault",
  sim: "sim",
  attack: "attack",
  plant: "planted",
  prove: "prove",
  escape: "escape",
};

const [proof, ...args] = process.argv.slice(2);
if (!Object.hasOwn(PROOFS, proof ?? "")) {
  console.error(`say which proof to run: ${Object.keys(PROOFS).join(", ")}`);
  process.exit(1);
}

const { main } = await import(pathToFileURL(join(compiledFolder(), "stress", PROOFS[proof], "main.js")).href);
try {
  process.exit(await main(args));
} catch (error) {
  if (!String(error?.code).startsWith("ERR_PARSE_ARGS")) throw error;
  console.error(`${error.message}\nwhat it takes stands at the head of stress/${PROOFS[proof]}/main.ts`);
  process.exit(1);
}
