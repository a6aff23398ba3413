/** Reference page of ledger records and events. */
import { EVENT_NAMES, LEDGER_EVENTS } from "../../../src/ledger/events.ts";
import { codeSpan, generatedNote, tableRow } from "./markdown.ts";

const FIELDS: readonly (readonly [name: string, about: string])[] = [
  ["`seq`", "position in the whole ledger, from 0, without gaps"],
  ["`ts_ms`", "time, in milliseconds since 1970"],
  ["`event`", "name of an event, as below"],
  ["`actor`", "agent, person or key that acted, or the engine"],
  ["`run_id`, `run_seq`", "run, and position of the record in it; absent without a run"],
  ["`step`, `tool`, `effect`, `reason`", "the call, if the record has one; the agent gave the reason"],
  ["`args_hash`, `result_hash`", "keyed hashes of arguments and result; the values are never on the ledger"],
  ["`before_hash`, `after_hash`", "keyed hashes of the state before and after the call"],
  ["`detail`", "reasons of a block, description of a failure, or decision and card"],
  ["`prev`", "hash of the previous record; 64 zeros in the first record"],
  ["`hash`", "SHA-256 over the record without this field, as canonical JSON (RFC 8785)"],
];

export function recordsPage(): string {
  return `# Records and events

${generatedNote("src/ledger/events.ts")}

The ledger is a list of records. Each record is one line of canonical JSON and contains the hash of the previous record.

Read records with \`svc export\`, \`GET /v1/runs/{id}/export\` or \`GET /v1/search/records\`. Verify them with \`svc verify\` or
with two independent verifiers ([prove it](../guides/prove-it.md)). A verifier must accept fields that it does not know.

${tableRow(["Field", "Meaning"])}${tableRow(["-", "-"])}${FIELDS.map((field) => tableRow(field)).join("")}
## Events

${tableRow(["Event", "Meaning"])}${tableRow(["-", "-"])}${EVENT_NAMES.map((name) => tableRow([codeSpan(name), LEDGER_EVENTS[name]])).join("")}`;
}
