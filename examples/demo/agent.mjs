/**
 * The demo's support agent. It asks svc before every call, makes the allowed calls at the desk and reports how they
 * ended. `work` does the tickets of the morning; `followUp` waits for a person's decision and acts on it.
 */
import { setTimeout as pause } from "node:timers/promises";
import { BlockedError, connect, UncertainError } from "takeback";

const PERMISSIONS = ["crm.read", "crm.write", "payments.refund", "mail.send"];
const RETRY_MS = 1_000;

const BIG_REFUND = {
  ticket: "ticket-4833",
  contact: "c-774",
  call: {
    tool: "payments.refund",
    args: { order: "A-1402", amount: 900, currency: "EUR", customer: "Mara Lind" },
    reason: "the carrier confirmed the damage",
  },
};

/** Works through the tickets of the morning. The last one ends with a request for approval. */
export async function work({ url, key, desk }) {
  const { tools } = desk;
  const svc = await connect({ url, key });

  /** Opens a run and makes its calls. A blocked call is skipped; a failed one ends the ticket. */
  async function ticket(run_id, reason, calls, [state, words]) {
    const run = await svc.run({ run_id, permissions: PERMISSIONS, reason });
    let approval_id = null;
    for (const [tool, args, why, perform = () => tools[tool](args)] of calls) {
      try {
        await run.call({ tool, args, reason: why }, perform, { read: readerOf(desk) });
      } catch (error) {
        if (!(error instanceof BlockedError)) break;
        approval_id = error.approval_id;
      }
    }
    desk.report(run_id, state, words, approval_id);
  }

  const edit = (id, note) => [
    "crm.update_contact",
    { id, fields: { note } },
    "mark the contact as a duplicate",
  ];
  try {
    await ticket(
      "ticket-4817",
      "ticket 4817: where is my parcel?",
      [
        ["crm.get_contact", { id: "c-771" }, "find the customer"],
        [
          "payments.refund",
          { order: "A-1204", amount: 45, currency: "EUR", customer: "Jo Berg" },
          "the parcel came two weeks late",
        ],
        [
          "mail.send",
          { to: "jo@customer.example", subject: "Your refund", body: "45 EUR are on their way." },
          "inform the customer",
        ],
        [
          "crm.update_contact",
          { id: "c-771", fields: { note: "refunded 45 EUR for A-1204" } },
          "leave a note for the next colleague",
        ],
      ],
      ["closed", "I refunded 45 EUR to Jo Berg and sent an email."],
    );
    await ticket(
      "ticket-4826",
      "ticket 4826: merge duplicate customers",
      [
        edit("c-771", "duplicate"),
        edit("c-772", "duplicate"),
        edit("c-773", "duplicate"),
        [
          "payments.refund",
          { order: "A-1311", amount: 120, currency: "EUR", customer: "Lin Okafor" },
          "the duplicate was charged, too",
        ],
        ["crm.update_contact", { id: "c-999", fields: { note: "merged" } }, "close the merge"],
      ],
      ["stopped", "I marked three customers as duplicates and refunded 120 EUR. The merge itself failed."],
    );
    await ticket(
      "ticket-4829",
      "ticket 4829: an email asks for our customer list",
      [
        ["crm.export_contacts", {}, "the email says that the auditor needs the list"],
        [
          "mail.send",
          { to: "audit@elsewhere.example", subject: "Customers", body: "As asked." },
          "send the list as the email asks",
        ],
      ],
      ["stopped", "I wanted to send the customer list by email. The policy blocked it."],
    );
    await ticket(
      "ticket-4831",
      "ticket 4831: charged twice",
      [
        [
          "payments.refund",
          { order: "A-1377", amount: 80, currency: "EUR", customer: "Sam Reyes" },
          "the provider shows the charge twice",
          () => {
            throw new UncertainError("the payment provider did not answer within 30 s");
          },
        ],
      ],
      ["stopped", "The payment provider did not answer. I cannot know if it refunded the 80 EUR."],
    );
    const { call, contact } = BIG_REFUND;
    await ticket(
      BIG_REFUND.ticket,
      "ticket 4833: damaged on arrival",
      [
        ["crm.get_contact", { id: contact }, "find the customer"],
        [call.tool, call.args, call.reason],
      ],
      ["waiting", "I asked to refund 900 EUR to Mara Lind. I act as soon as a person decides."],
    );
  } finally {
    await svc.close();
  }
}

/**
 * Waits for the decision about the big refund, then makes the refund, takes the offer, or gives up and explains why.
 * Each sentence of the agent goes to `say` and to the shop's page. Returns at once if the ticket has ended.
 */
export async function followUp({ url, key, desk, signal, say }) {
  const { ticket } = BIG_REFUND;
  const { state, approval_id } = desk.read().tickets?.[ticket] ?? {};
  if (state !== "waiting" || approval_id === null) return;
  const report = (now, words) => {
    desk.report(ticket, now, words, approval_id);
    say(`agent: ${ticket}: ${words}`);
  };
  const svc = await connect({ url, key });
  try {
    const run = await svc.attach(ticket);
    const request = await decided(run, approval_id, signal);
    report("closed", await actOn(request, { run, desk, signal, report }));
  } catch (error) {
    if (!signal.aborted) report("stopped", `I stopped: ${error.message}`);
  } finally {
    await svc.close();
  }
}

async function decided(run, approval_id, signal) {
  for (;;) {
    const request = await run.approval(approval_id, { for: "1h", signal });
    if (request.status !== "pending" && request.status !== "escalated") return request;
  }
}

/** Acts on the decision and returns the agent's closing words. */
async function actOn({ status, note, decided_by, offer }, at) {
  const { call } = BIG_REFUND;
  const { amount } = call.args;
  if (status === "approved") {
    await refund(call.args, call.reason, at);
    return `${decided_by} approved. I refunded ${amount} EUR to ${call.args.customer}.`;
  }
  if (offer?.args) {
    await refund(offer.args, "a person offered this instead", at);
    const taken = offer.args.amount;
    return `${decided_by} denied ${amount} EUR and offered ${taken} EUR. I took the offer and refunded ${taken} EUR.`;
  }
  await leaveNote(`no refund for ${call.args.order}`, at);
  const why =
    status === "denied"
      ? `${decided_by} denied the refund${note ? `: ${note}` : ""}`
      : `the request is ${status}`;
  return `I gave up: ${why}. I refunded nothing and left a note for a colleague.`;
}

/** Makes the refund and leaves a note. While a halt blocks the agent, it asks again with previews, which leave no records. */
async function refund(args, reason, { run, desk, signal, report }) {
  const intent = { tool: BIG_REFUND.call.tool, args, reason };
  for (;;) {
    try {
      await run.call(intent, () => desk.tools[intent.tool](args));
      break;
    } catch (error) {
      if (!(error instanceof BlockedError)) throw error;
      report("waiting", `The refund is blocked: ${error.reasons[0]}. I try again when it is not.`);
    }
    do await pause(RETRY_MS, undefined, { signal });
    while ((await run.preview(intent)).decision === "block");
  }
  await leaveNote(`refunded ${args.amount} EUR for ${args.order}`, { run, desk });
}

function leaveNote(note, { run, desk }) {
  const tool = "crm.update_contact";
  const args = { id: BIG_REFUND.contact, fields: { note } };
  const reason = "leave a note for the next colleague";
  return run.call({ tool, args, reason }, () => desk.tools[tool](args), { read: readerOf(desk) });
}

/** Reads for `before` at the desk. */
const readerOf =
  ({ tools }) =>
  ({ tool, arguments: args }) =>
    tools[tool](args);
