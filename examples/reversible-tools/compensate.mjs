/**
 * The compensator: reads one undo as JSON on stdin, does it, and ends with 0 when it took effect.
 *
 *   svc rollback <run> --compensator-cmd "node compensate.mjs http://127.0.0.1:4010"
 *
 * It gets {run_id, step, tool, original_tool, args, idempotency_key}. The key is the same on every try of
 * the same undo, so the service behind can tell a retry from a second order.
 */
import { ask, input } from "./desk.mjs";

const UNDO = {
  "rooms.cancel": ({ booking }) => ["DELETE", `/bookings/${booking}`],
  "rooms.restore_note": ({ booking, note }) => ["PUT", `/notes/${booking}`, { note }],
  "desk.refund": ({ charge }) => ["POST", `/refunds/${charge}`],
};

const call = await input();
const undo = UNDO[call.tool];
if (undo === undefined) {
  console.error(`nobody knows how to do ${call.tool}`);
  process.exit(1);
}
try {
  const [method, path, body] = undo(call.args);
  await ask(method, path, body, { "idempotency-key": call.idempotency_key });
} catch (error) {
  // What stands on stderr becomes the step's error; argument values are taken out of it.
  console.error(error.message);
  process.exit(1);
}
