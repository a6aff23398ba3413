/**
 * An agent at work: it books a room, writes a note, charges a card and sends a letter if told to, each call
 * through the service, and prints the id of its run.
 *
 *   node agent.mjs http://127.0.0.1:4010 data [--letter]
 */
import { fileURLToPath } from "node:url";
import { open } from "takeback";
import { ask } from "./desk.mjs";

const [, , , data = "data", ...flags] = process.argv;
const manifests = fileURLToPath(new URL("manifests.yaml", import.meta.url));
const svc = await open({ manifests, store: "sqlite", data });
const run = await svc.run({
  actor: "desk-bot",
  permissions: ["rooms.read", "rooms.write", "desk.charge", "desk.write", "post.send"],
});

const book = { room: "12", night: "2026-08-01", guest: "Ada" };
const booking = await run.call({ tool: "rooms.book", args: book, reason: "guest asked for a room" }, () =>
  ask("POST", "/bookings", book),
);

const note = { booking: booking.id, note: "late arrival" };
await run.call({ tool: "rooms.set_note", args: note, reason: "guest comes late" }, () =>
  ask("PUT", `/notes/${booking.id}`, note),
);

const charge = { booking: booking.id, amount: 80 };
await run.call({ tool: "desk.charge", args: charge, reason: "one night" }, () =>
  ask("POST", "/charges", charge),
);

if (flags.includes("--letter")) {
  const letter = { booking: booking.id };
  await run.call({ tool: "post.letter", args: letter, reason: "confirmation by post" }, () =>
    ask("POST", "/letters", letter),
  );
}

await svc.close();
console.log(run.run_id);
