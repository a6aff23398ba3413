/**
 * The reader: gets {tool, arguments} as JSON on stdin and prints what the tool shows, as JSON. Anything but
 * exit code 0 and JSON counts as a failed read.
 *
 *   svc rollback <run> --compensator-cmd ".." --reader-cmd "node read.mjs http://127.0.0.1:4010"
 */
import { ask, input } from "./desk.mjs";

const READ = {
  "rooms.get": ({ booking }) => `/bookings/${booking}`,
  "desk.get_charge": ({ charge }) => `/charges/${charge}`,
};

const { tool, arguments: args } = await input();
console.log(JSON.stringify(await ask("GET", READ[tool](args))));
