/**
 * The payments service: a process of its own that knows nothing of svc. Two things make its refunds
 * reversible: a reversal that honours its Idempotency-Key, and a way to look.
 *
 *   node payments.mjs [port]
 */
import { createServer } from "node:http";

const refunds = new Map();
const reversals = new Map();

const routes = {
  "POST /refunds": (_, { charge, amount }) => {
    const refund = { id: `rf_${refunds.size + 1}`, charge, amount, status: "paid" };
    refunds.set(refund.id, refund);
    return refund;
  },
  "GET /refunds": (id) => refunds.get(id) ?? refuse(404, `no refund ${id}`),
  // One key, one effect, one answer, however often it is asked: a rollback that was interrupted asks again.
  "POST /reversals": (id, _, key) => {
    if (!key) return refuse(400, "a reversal needs an Idempotency-Key");
    if (!reversals.has(key)) {
      const refund = refunds.get(id) ?? refuse(404, `no refund ${id}`);
      refund.status = "reversed";
      reversals.set(key, { ...refund });
    }
    return reversals.get(key);
  },
  "POST /books": () => refuse(503, "the books are closed for the month"),
  "GET /state": () => ({ refunds: [...refunds.values()], reversals: reversals.size }),
};

function refuse(status, message) {
  throw Object.assign(new Error(message), { status });
}

async function bodyOf(request) {
  const chunks = await request.toArray();
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
}

const server = createServer(async (request, response) => {
  const answer = (status, value) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  try {
    const [, resource, id] = request.url.split("/");
    const route = routes[`${request.method} /${resource}`] ?? refuse(404, "no such route");
    answer(200, route(id, await bodyOf(request), request.headers["idempotency-key"]));
  } catch (error) {
    answer(error.status ?? 500, { error: error.message });
  }
});

server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () =>
  console.log(`payments on http://127.0.0.1:${server.address().port}`),
);
