/** What each tool of the Stripe pack is drilled with. */
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { Direct, PackDrill, ToolDrill } from "../drill.ts";

async function made(direct: Direct, path: string, body: JsonObject): Promise<string> {
  return ((await direct("POST", path, body)).body as { id: string }).id;
}

const TOOLS: ToolDrill[] = [
  {
    tool: "stripe.customers.create",
    prepare: async () => ({
      args: { name: "Ann", email: "ann@example.com", "metadata[order]": "1" },
      look: ["/v1/customers"],
    }),
  },
  {
    tool: "stripe.customers.update",
    prepare: async (direct) => {
      const body = { name: "Ann", email: "ann@example.com", description: "old" };
      const id = await made(direct, "/v1/customers", body);
      return { args: { id, name: "Eve", email: "eve@example.com" }, look: [`/v1/customers/${id}`] };
    },
  },
  {
    tool: "stripe.payment_intents.create",
    prepare: async () => ({
      args: { amount: 100, currency: "eur" },
      look: ["/v1/payment_intents"],
    }),
    stays: [/^\[0\]\.body\.data$/],
  },
  {
    tool: "stripe.payment_intents.update",
    prepare: async (direct) => {
      const body = { amount: "100", currency: "eur", description: "old" };
      const id = await made(direct, "/v1/payment_intents", body);
      return { args: { id, amount: 200, description: "new" }, look: [`/v1/payment_intents/${id}`] };
    },
  },
  {
    tool: "stripe.sessions.create",
    prepare: async (direct) => {
      const product = await made(direct, "/v1/products", { name: "p" });
      const price = await made(direct, "/v1/prices", { product, unit_amount: "5", currency: "eur" });
      return {
        args: {
          mode: "payment",
          success_url: "https://example.com/done",
          "line_items[0][price]": price,
          "line_items[0][quantity]": 1,
        },
        look: ["/v1/checkout/sessions"],
      };
    },
    stays: [/^\[0\]\.body\.data$/],
  },
];

export const stripe: PackDrill = {
  pack: "stripe",
  service: "stripe",
  hosts: { "api.stripe.com": "" },
  authorization: "Bearer sk_test_drill",
  form: true,
  volatile: [],
  tools: TOOLS,
};
