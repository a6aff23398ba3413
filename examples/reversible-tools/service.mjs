/**
 * The booking desk: a real HTTP service with state in memory. What matters for undoing is at the bottom of
 * each handler: an undo with an idempotency key that was seen before does nothing and says the same again.
 *
 *   node service.mjs [port]        prints the address it listens on
 */
import { createServer } from "node:http";

const bookings = new Map();
const charges = new Map();
const letters = [];
const seen = new Set();
/** Undo key to the answer that was given for it. */
const undone = new Map();
/** How often each undo really had an effect; a test looks here for one that ran twice. */
const effects = new Map();
/** The next so many requests fail, to see what a retry does. */
let failures = 0;

const id = (prefix, map) => `${prefix}_${map.size + 1}`;
const found = (map, key) => map.get(key) ?? fail(404, `no ${key}`);

const routes = {
  "GET /bookings": (name) => found(bookings, name),
  "POST /bookings": (_, body) =>
    keep(bookings, { id: id("bk", bookings), status: "booked", note: null, ...body }),
  "DELETE /bookings": (name, _, key) =>
    once(key, () => {
      found(bookings, name).status = "cancelled";
      return { ok: true };
    }),
  "PUT /notes": (name, body, key) => {
    const change = () => {
      const booking = found(bookings, name);
      const previous = booking.note;
      booking.note = body.note;
      return { previous };
    };
    return key === undefined ? change() : once(key, change);
  },
  "GET /charges": (name) => found(charges, name),
  "POST /charges": (_, body) => keep(charges, { id: id("ch", charges), refunded: false, ...body }),
  "POST /refunds": (name, _, key) =>
    once(key, () => {
      found(charges, name).refunded = true;
      return { ok: true };
    }),
  "POST /seen": (name) => ({ seen: seen.add(name).has(name) }),
  "POST /letters": (_, body) => ({ letters: letters.push(body) }),
  "POST /failures": (_, body) => {
    failures = body.count;
    return { failures };
  },
  "GET /state": () => ({
    bookings: [...bookings.values()],
    charges: [...charges.values()],
    letters: letters.length,
    effects: Object.fromEntries(effects),
  }),
};

function keep(map, record) {
  map.set(record.id, record);
  return record;
}

/** The heart of a reversible service: one key, one effect, one answer, however often it is asked. */
function once(key, act) {
  if (key === undefined) return fail(400, "an undo needs an Idempotency-Key");
  if (undone.has(key)) return undone.get(key);
  const answer = act();
  undone.set(key, answer);
  effects.set(key, (effects.get(key) ?? 0) + 1);
  return answer;
}

function fail(status, message) {
  throw Object.assign(new Error(message), { status });
}

async function readBody(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text === "" ? {} : JSON.parse(text);
}

const server = createServer(async (request, response) => {
  const reply = (status, value) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  try {
    const [, resource, name] = new URL(request.url, "http://desk").pathname.split("/");
    const body = await readBody(request);
    const route = routes[`${request.method} /${resource}`] ?? fail(404, "no such route");
    if (failures > 0 && resource !== "failures" && resource !== "state") {
      failures--;
      fail(503, "the desk is closed for a moment");
    }
    reply(200, route(name && decodeURIComponent(name), body, request.headers["idempotency-key"]));
  } catch (error) {
    reply(error.status ?? 500, { error: error.message });
  }
});

server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
