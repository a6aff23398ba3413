/**
 * The agent: works through a ticket, asks svc before every call, and waits where a person must decide.
 *
 *   SVC_URL=http://127.0.0.1:8787 SVC_KEY=svc_... PAYMENTS_URL=http://127.0.0.1:4020 node agent.mjs
 */
import { BlockedError, connect } from "takeback";
import { tools } from "./tools.mjs";

const { SVC_URL, SVC_KEY } = process.env;
const svc = await connect({ url: SVC_URL, key: SVC_KEY });
const run = await svc.run({ permissions: ["payments.refund", "books.post"], reason: "ticket 4711" });
console.log(`agent: run ${run.run_id}`);

/** Asks, executes, reports; where an approval is missing, waits for it and asks again. */
async function call(tool, args, reason) {
  for (;;) {
    try {
      const result = await run.call({ tool, args, reason }, () => tools[tool](args));
      console.log(`agent: ${tool} ${args.charge}, ${args.amount}: done, ${result.id}`);
      return result;
    } catch (error) {
      if (!(error instanceof BlockedError && error.approval_id)) throw error;
      console.log(
        `agent: ${tool} ${args.charge}, ${args.amount}: ${error.reasons[0]}; request ${error.approval_id}`,
      );
      if ((await decided(error.approval_id)) !== "approved") throw error;
    }
  }
}

/** Answers as soon as somebody decides, on whatever server or command line that happens. */
async function decided(id) {
  for (;;) {
    const response = await fetch(`${SVC_URL}/v1/approvals/${id}?wait=30`, {
      headers: { authorization: `Bearer ${SVC_KEY}` },
    });
    const { status } = await response.json();
    if (status !== "pending" && status !== "escalated") return status;
  }
}

try {
  const small = await call("payments.refund", { charge: "ch_1", amount: 45 }, "the parcel never came");
  const big = await call("payments.refund", { charge: "ch_2", amount: 900 }, "the whole order was returned");
  await call("books.post", { refunds: [small.id, big.id] }, "close the ticket");
} catch (error) {
  console.log(`agent: gave up: ${error.message}`);
} finally {
  await svc.close();
}
