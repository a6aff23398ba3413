/** The tools by the names of their manifests. The agent calls them, and so does whoever undoes and reads back. */
const base = process.env.PAYMENTS_URL ?? "http://127.0.0.1:4020";

export const tools = {
  "payments.refund": ({ charge, amount }) => ask("POST", "/refunds", { charge, amount }),
  "payments.get_refund": ({ refund }) => ask("GET", `/refunds/${refund}`),
  "payments.reverse_refund": ({ refund }, key) => ask("POST", `/reversals/${refund}`, {}, key),
  "books.post": (entry) => ask("POST", "/books", entry),
};

async function ask(method, path, body, key) {
  const response = await fetch(base + path, {
    method,
    headers: { "content-type": "application/json", ...(key ? { "idempotency-key": key } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
