/** The page of the demo's shop, its style and its script. Every text from the desk is escaped. */

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (value) => String(value).replace(/[&<>"']/g, (char) => ESCAPES[char]);
/** Escapes every value of a template; lists are joined. Values of this template are not escaped twice. */
class Html {
  constructor(text) {
    this.text = text;
  }
}
const shown = (value) =>
  Array.isArray(value) ? value.map(shown).join("") : value instanceof Html ? value.text : escaped(value);
const html = (strings, ...values) => new Html(String.raw({ raw: strings }, ...values.map(shown)));

const STATE_WORDS = { waiting: "waiting for you", closed: "closed", stopped: "stopped" };
const money = (amount) => `${amount} EUR`;
const totalOf = (refunds, status) =>
  refunds.filter((one) => one.status === status).reduce((sum, { amount }) => sum + amount, 0);

export function pageOf(state, console_url) {
  const refunds = Object.values(state.refunds).toReversed();
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Pier 7 · the demo's shop</title>
<link rel="stylesheet" href="/shop.css"><link rel="icon" href="data:,"><script src="/shop.js" defer></script></head>
<body><header><p class="brand">Pier 7</p><p>A small web shop that a support agent works for. This page shows its books.</p></header>
<main><h1 class="hidden">The shop's books</h1>
<div id="books" aria-live="polite">
${nextStep(state, console_url)}
<dl class="totals"><div><dt>Refunded to customers</dt><dd id="paid">${money(totalOf(refunds, "paid"))}</dd></div><div><dt>Money back after an undo</dt><dd id="back">${money(totalOf(refunds, "reversed"))}</dd></div></dl>
<section><h2>Refunds</h2>${list(refunds.map(refundLine), "No refund yet.")}</section>
<section><h2>What the agent says</h2>${list(
    Object.entries(state.tickets ?? {})
      .toReversed()
      .map((ticket) => ticketLine(ticket, console_url)),
    "No ticket yet.",
  )}</section>
<section><h2>Customers</h2>${list(
    Object.values(state.contacts).map(
      ({ name, city, note }) =>
        html`<li><span>${name}, ${city}</span><span class="note">${note === "" ? "no note" : note}</span></li>`,
    ),
  )}</section>
<section><h2>Sent emails</h2>${list(
    state.mails.map(
      ({ to, subject }) => html`<li><span>${subject}</span><span class="note">${to}</span></li>`,
    ),
    "No email yet.",
  )}</section>
</div>
<p id="lost" role="status" hidden>The demo has stopped. Run npm start again; this page then continues.</p></main></body></html>`
    .text;
}

const list = (items, none = "") =>
  items.length === 0 ? html`<p class="note">${none}</p>` : html`<ul>${items}</ul>`;

function refundLine({ order, customer, amount, status }) {
  const back = status === "reversed";
  return html`<li class="${back ? "back" : "paid"}"><span><b>${money(amount)}</b> to ${customer}, order ${order}</span><span class="mark">${back ? "money back" : "paid"}</span></li>`;
}

function ticketLine([ticket, { state, words }], console_url) {
  return html`<li class="${state}"><span><a href="${console_url}/runs/${ticket}">${ticket}</a> ${words}</span><span class="mark">${STATE_WORDS[state] ?? state}</span></li>`;
}

/** One sentence and one link, for each state that the demo can reach. */
function nextStep({ tickets = {}, refunds }, console_url) {
  const big = Object.values(refunds).find(({ order }) => order === "A-1402");
  const merge = Object.values(refunds).find(({ order }) => order === "A-1311");
  const undo = (ticket, refund) => [
    `/runs/${ticket}`,
    `Roll back ${ticket}`,
    `The ${refund.amount} EUR for ${refund.customer} come back on this page.`,
  ];
  const [path, label, then] =
    tickets["ticket-4833"]?.state === "waiting"
      ? [
          "/approvals",
          "Approve or deny the refund of 900 EUR",
          "The agent acts at once, and you see it here.",
        ]
      : big?.status === "paid"
        ? undo("ticket-4833", big)
        : merge?.status === "paid"
          ? undo("ticket-4826", merge)
          : [
              "/runs",
              "See what is left of each run",
              "To play again: stop the demo, delete .demo, start it.",
            ];
  return html`<p class="next">Next: <a href="${console_url}${path}">${label}</a>. ${then}</p>`;
}

/** Replaces the books after each event, and keeps the page usable if the demo stops. */
export const SCRIPT = `
const lost = document.getElementById("lost");
let latest = 0;
async function load() {
  const turn = ++latest;
  const text = await (await fetch("/")).text();
  if (turn !== latest) return;
  const books = new DOMParser().parseFromString(text, "text/html").getElementById("books");
  const old = document.getElementById("books");
  if (books.innerHTML !== old.innerHTML) old.innerHTML = books.innerHTML;
}
const events = new EventSource("/events");
events.onmessage = () => { lost.hidden = true; load().catch(() => {}); };
events.onerror = () => { lost.hidden = false; };
`;

export const STYLE = `
:root { color-scheme: light dark; --ink: #1d2733; --soft: #56616e; --paper: #f6f3ec; --card: #fffdf8; --line: #ddd6c8; --sea: #0b5c77; --good: #1d6b3c; --warn: #8a4b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #eae6dd; --soft: #b3aea3; --paper: #15191e; --card: #1e242b; --line: #38414b; --sea: #7cc7e2; --good: #7fd3a0; --warn: #f0b35f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
header, main { max-width: 46rem; margin: 0 auto; padding: 1rem; }
header { padding-bottom: 0; }
header p { margin: 0; color: var(--soft); }
header .brand { font-size: 1.6rem; font-weight: 700; color: var(--sea); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
h2 { margin: 0 0 .4rem; font-size: 1rem; }
section, .next, .totals > div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; }
section { margin-top: .8rem; }
.next { margin: 0 0 .8rem; border-left: 5px solid var(--sea); }
a { color: var(--sea); }
.totals { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; font-size: 1.9rem; font-weight: 700; font-variant-numeric: tabular-nums; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; gap: .3rem 1rem; justify-content: space-between; align-items: baseline; padding: .4rem 0; border-top: 1px solid var(--line); }
li:first-child { border-top: 0; }
.note { margin: 0; color: var(--soft); text-align: right; }
p.note { text-align: left; }
.mark { flex: none; font-weight: 600; color: var(--soft); }
.paid .mark, .waiting .mark { color: var(--warn); }
.back .mark, .closed .mark { color: var(--good); }
.back b { text-decoration: line-through; }
@media (max-width: 30rem) { li { flex-direction: column; } .note { text-align: left; } }
`;
