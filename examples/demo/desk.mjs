/**
 * The support desk of the demo's shop: contacts, refunds, emails and the agent's notes in one JSON file. As a program,
 * this file is the command behind a rollback. It undoes and reads: a call as JSON on stdin, the answer on stdout.
 *
 *   node desk.mjs .demo/desk.json
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const NEW = {
  contacts: {
    "c-771": { name: "Jo Berg", city: "Kiel", note: "" },
    "c-772": { name: "Lin Okafor", city: "Porto", note: "" },
    "c-773": { name: "Sam Reyes", city: "Graz", note: "" },
    "c-774": { name: "Mara Lind", city: "Turku", note: "" },
  },
  refunds: {},
  mails: [],
  tickets: {},
};

export function openDesk(file) {
  const read = () => JSON.parse(readFileSync(file, "utf8"));
  const change = (edit) => {
    const state = read();
    const answer = edit(state);
    const next = `${file}.${process.pid}`;
    writeFileSync(next, JSON.stringify(state, null, 2));
    renameSync(next, file);
    return answer;
  };
  const contactOf = (state, id) => {
    if (!Object.hasOwn(state.contacts, id)) throw new Error(`there is no contact ${id}`);
    return state.contacts[id];
  };
  return {
    begin: () => writeFileSync(file, JSON.stringify(NEW, null, 2)),
    read,
    /** Keeps the agent's words about a ticket; `state` is `waiting`, `closed` or `stopped`. */
    report: (ticket, state, words, approval_id = null) =>
      change((desk) => {
        desk.tickets = { ...desk.tickets, [ticket]: { state, words, approval_id } };
      }),
    tools: {
      "crm.get_contact": ({ id }) => contactOf(read(), id),
      "crm.export_contacts": () => Object.values(read().contacts),
      "crm.update_contact": ({ id, fields }) =>
        change((state) => Object.assign(contactOf(state, id), fields)),
      "crm.restore_contact": ({ id, fields }) =>
        change((state) => Object.assign(contactOf(state, id), fields)),
      "payments.refund": ({ order, amount, currency, customer }) =>
        change((state) => {
          const refund = `rf-${Object.keys(state.refunds).length + 1}`;
          state.refunds[refund] = { order, amount, currency, customer, status: "paid" };
          return { refund };
        }),
      "payments.get_refund": ({ refund }) => read().refunds[refund],
      "payments.reverse_refund": ({ refund }) =>
        change((state) => Object.assign(state.refunds[refund], { status: "reversed" })),
      "mail.send": ({ to, subject }) => change((state) => ({ id: `m-${state.mails.push({ to, subject })}` })),
    },
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const call = JSON.parse(await text(process.stdin));
  try {
    const { tools } = openDesk(process.argv[2]);
    console.log(JSON.stringify(tools[call.tool](call.args ?? call.arguments)));
  } catch (error) {
    // The end of stderr becomes the step's error on the ledger.
    console.error(error.message);
    process.exit(1);
  }
}
