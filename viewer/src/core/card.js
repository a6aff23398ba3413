// The card of a request, from a file: drawn again, and its hash compared with the one that a passkey signed. The hash is
// an HMAC with a key of the request. Nothing here signs anything.

import { Finding } from "./finding.js";
import { canonical } from "./json.js";
import { sha256, toHex } from "./sha256.js";

const BLOCK_BYTES = 64;
const cardText = new TextEncoder();

export function looksLikeCard(text) {
  return /^\s*\{\s*"approval_id"\s*:/.test(text);
}

/** `{id, hash, computed, content}` of a file that `svc approvals show <id> --json` wrote. */
export function parseCard(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Finding("is not JSON");
  }
  const shown = file?.shown;
  const good =
    typeof shown?.key === "string" && typeof shown.hash === "string" && isCardContent(shown.content);
  if (!good) throw new Finding("has no signed part: this approval did not have to be signed, or it ended");
  const computed = `sha256:${hmacSha256(shown.key, canonical(shown.content))}`;
  return { id: shown.content.approval_id, hash: shown.hash, computed, content: shown.content };
}

function isCardContent(content) {
  return typeof content?.approval_id === "string" && typeof content.card?.sentence === "string";
}

function hmacSha256(key, message) {
  const bytes = cardText.encode(key);
  const padded = new Uint8Array(BLOCK_BYTES);
  padded.set(bytes.length > BLOCK_BYTES ? sha256(bytes) : bytes);
  const inner = sha256(new Uint8Array([...padded.map((byte) => byte ^ 0x36), ...cardText.encode(message)]));
  return toHex(sha256(new Uint8Array([...padded.map((byte) => byte ^ 0x5c), ...inner])));
}

/** Whether the card is the one that was signed. `payloads` are those of signatures that hold. */
export function judgeCard({ id, hash, computed }, payloads) {
  if (computed !== hash)
    return { level: "bad", headline: "Different", text: "The card is not the one that its own hash names." };
  const own = payloads.filter((payload) => payload.id === id && payload.shown_hash !== undefined);
  const others = own.filter(({ shown_hash }) => shown_hash !== computed);
  if (others.length > 0)
    return {
      level: "bad",
      headline: "Different",
      text: `${names(others)} signed another card than this one.`,
    };
  if (own.length === 0)
    return {
      level: "partial",
      headline: "Equal to its own hash",
      text: "Add a bundle with the signature to learn whether this card was signed.",
    };
  return { level: "good", headline: "Equal", text: `${names(own)} signed exactly this card.` };
}

const names = (payloads) => [...new Set(payloads.map(({ by }) => by))].join(" and ");

/** What the card draws: headings with their lines, all of it text. */
export function cardSections({ content }) {
  const { card } = content;
  const list = (values) => (Array.isArray(values) ? values : []);
  const value = ({ label, text, size }) => [`${label}${size === undefined ? "" : ` (${size})`}`, text];
  const change = ({ label, before, after }) => [label, `${before} → ${after}`];
  const who = [
    ["Agent", content.actor],
    ["Run", content.run_id],
    ["Tool", content.tool],
    ["Tenant", content.tenant],
    ["Environment", content.environment],
    ["Step", content.step],
    ["Approvers", describeApprovers(content.approvers)],
  ];
  return [
    ["Call", who],
    ["Values", [...list(card.fields), ...list(card.more)].map(value)],
    ["Changes", list(card.changes).map(change)],
    [
      "Reasons",
      [
        ["Agent's reason", card.reason],
        ["Run's reason", card.run_reason],
        ["Note", card.note],
        ["Rule", card.rule?.id],
        ...list(card.causes).map((cause) => ["Why approval is required", cause]),
        ["Risk", card.risk?.text],
      ],
    ],
    [
      "Undo",
      [
        ["How", card.way_back?.text],
        ...list(card.way_back?.residue).map((one) => ["Stays", one]),
        ["Irreversible", card.irreversible ? "This call cannot be undone." : null],
      ],
    ],
  ]
    .map(([title, rows]) => ({ title, rows: rows.filter(([, text]) => text !== null && text !== undefined) }))
    .filter(({ rows }) => rows.length > 0)
    .map(({ title, rows }) => ({ title, rows: rows.map(([label, text]) => [label, String(text)]) }));
}

function describeApprovers(approvers) {
  if (approvers === null || typeof approvers !== "object") return null;
  const groups = Array.isArray(approvers.groups) ? approvers.groups.join(", ") : "";
  return `${approvers.quorum ?? 1} of ${groups === "" ? "any group" : groups}`;
}
