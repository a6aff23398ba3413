/**
 * The command behind a rollback, for undoing and for reading back alike: a call as JSON on stdin, the tool's
 * answer as JSON on stdout, exit code 0 when it worked.
 *
 *   svc rollback <run> --compensator-cmd "node undo.mjs" --reader-cmd "node undo.mjs"
 */
import { text } from "node:stream/consumers";
import { tools } from "./tools.mjs";

const call = JSON.parse(await text(process.stdin));
try {
  const answer = await tools[call.tool](call.args ?? call.arguments, call.idempotency_key);
  console.log(JSON.stringify(answer));
} catch (error) {
  // The end of stderr becomes the step's error on the ledger.
  console.error(error.message);
  process.exit(1);
}
