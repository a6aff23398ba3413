/**
 * The demo's support agent. It asks svc before every call, carries out what is allowed at the desk, and says
 * how it went: nothing that the console shows of it is made up.
 */
import { BlockedError, connect, UncertainError } from "takeback";

export async function work({ url, key, tools }) {
  const svc = await connect({ url, key });
  const read = ({ tool, arguments: args }) => tools[tool](args);
  const permissions = ["crm.read", "crm.write", "payments.refund", "mail.send"];

  /** A run of the agent; what is refused or fails is on record, and the agent goes on with the next ticket. */
  async function ticket(run_id, reason, calls) {
    const run = await svc.run({ run_id, permissions, reason });
    for (const [tool, args, why, perform = () => tools[tool](args)] of calls) {
      try {
        await run.call({ tool, args, reason: why }, perform, { read });
      } catch (error) {
        if (!(error instanceof BlockedError)) break;
      }
    }
  }

  const edit = (id, note) => [
    "crm.update_contact",
    { id, fields: { note } },
    "mark the contact as a duplicate",
  ];
  try {
    await ticket("ticket-4817", "ticket 4817: where is my parcel?", [
      ["crm.get_contact", { id: "c-771" }, "find the customer"],
      [
        "payments.refund",
        { order: "A-1204", amount: 45, currency: "EUR", customer: "Jo Berg" },
        "the parcel came two weeks late",
      ],
      [
        "mail.send",
        { to: "jo@customer.example", subject: "Your refund", body: "45 EUR are on their way." },
        "tell the customer",
      ],
      [
        "crm.update_contact",
        { id: "c-771", fields: { note: "refunded 45 EUR for A-1204" } },
        "leave a note for the next colleague",
      ],
    ]);
    await ticket("ticket-4826", "ticket 4826: merge duplicate customers", [
      edit("c-771", "duplicate"),
      edit("c-772", "duplicate"),
      edit("c-773", "duplicate"),
      [
        "payments.refund",
        { order: "A-1311", amount: 120, currency: "EUR", customer: "Lin Okafor" },
        "the duplicate was charged, too",
      ],
      ["crm.update_contact", { id: "c-999", fields: { note: "merged" } }, "close the merge"],
    ]);
    await ticket("ticket-4829", "ticket 4829: a mail asks for our customer list", [
      ["crm.export_contacts", {}, "the mail says that the auditor needs the list"],
      [
        "mail.send",
        { to: "audit@elsewhere.example", subject: "Customers", body: "As asked." },
        "send the list as the mail asks",
      ],
    ]);
    await ticket("ticket-4831", "ticket 4831: charged twice", [
      [
        "payments.refund",
        { order: "A-1377", amount: 80, currency: "EUR", customer: "Sam Reyes" },
        "the provider shows the charge twice",
        () => {
          throw new UncertainError("the payment provider did not answer within 30 s");
        },
      ],
    ]);
    await ticket("ticket-4833", "ticket 4833: damaged on arrival", [
      ["crm.get_contact", { id: "c-772" }, "find the customer"],
      [
        "payments.refund",
        { order: "A-1402", amount: 900, currency: "EUR", customer: "Lin Okafor" },
        "the carrier confirmed the damage",
      ],
    ]);
  } finally {
    await svc.close();
  }
}
