/** The handwritten serializer writes the same text as JSON.stringify, for any document. */
import { expect, it } from "vitest";
import type { TableDocs, TableName } from "../govern/port/tables.ts";
import type { RunDoc, RunToolDoc, StepDoc } from "../govern/runs/run.ts";
import { changedText, docText, withChange } from "./doc-text.ts";

const RUN: Required<RunDoc> = {
  run_id: "run_1",
  principal: "key:bot",
  actor: "bot",
  acting: ["helper"],
  mode: "enforce",
  tenant: "acme",
  environment: "live",
  reason: "asked to",
  scope: { permissions: ["a.b"], seal: "sha256:00" },
  created_ms: 1,
  salt: "ab",
  next_step: 2,
  next_run_seq: 3,
  open: 4,
  uncertain: 5,
  compensation_failed: 6,
  awaiting: 7,
  open_approvals: 8,
  plans: ["p"],
  called_ms: 9,
  undo_left: { unfinished: true, steps: [{ step: 1, why: "conflict" }] },
  child_of: { parent: "run_0", counted_run: "run_0", level: 2 },
  children: 1,
  tree_open_approvals: 1,
  sandbox: "ab",
};
const STEP: Required<StepDoc> = {
  run_id: "run_1",
  step: 1,
  tool: "crm.get",
  reason: "asked to",
  effect: "read",
  status: "intended",
  depends_on: [0],
  requires: ["a"],
  compensation_tool: "c",
  handle: "h",
  error: "e",
  manifest_version: "1",
  manifest_hash: "m",
  risk_score: 2,
  args_hash: "sha256:00",
  result_hash: "sha256:01",
  intended_ms: 3,
  finished_ms: 4,
  intended_seq: 5,
  succeeded_seq: 6,
  compensated_seq: 7,
  idempotency: "i",
  repeat_of: { run_id: "r", step: 0 },
  undo_request: "u",
  undo_covers: [2],
  unverified: true,
  plan: "p",
  before_by: "agent",
  before_hash: "b",
  after_hash: "a",
  effect_check: "held",
  effect_check_by: "agent",
  closes_ms: 8,
  ref: "toolu_1",
  fed_by: [{ run_id: "r", step: 1, path: "$args.a", kind: "id" }],
  line: "l",
};
const RUN_TOOL: Required<RunToolDoc> = { run_id: "r", tool: "t", calls: 1, standing: 0 };
const NULLABLE = ["tenant", "effect", "error", "finished_ms", "succeeded_seq", "idempotency", "handle"];
const PLAIN_STEP = { depends_on: [], requires: [], repeat_of: undefined, undo_request: undefined };
const PLAIN_MORE = {
  undo_covers: undefined,
  unverified: undefined,
  plan: undefined,
  before_by: undefined,
  effect_check: undefined,
  effect_check_by: undefined,
  closes_ms: undefined,
  ref: undefined,
  fed_by: undefined,
  line: undefined,
};
const PLAIN_HASHES = { before_hash: undefined, after_hash: undefined };
const NO_TREE = { child_of: undefined, children: undefined, tree_open_approvals: undefined };
const ODD = ['quo"te', "back\\slash", "two\nlines", "\u0000", "ü €", "\u2028", "\ud800", "😀", ""];
const ODD_NUMBERS = [-1, 0.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, -0, 2 ** 53 - 1];

it.each<[TableName, object]>([
  ["runs", RUN],
  ["runs", { ...RUN, plans: undefined }],
  ["runs", { ...RUN, plans: undefined, undo_left: undefined }],
  ["runs", { ...RUN, plans: undefined, undo_left: undefined, acting: undefined }],
  ["steps", STEP],
  ["steps", { ...STEP, ...PLAIN_STEP, ...PLAIN_MORE, ...PLAIN_HASHES }],
  ["run_tools", RUN_TOOL],
  ["meta", { text: "t" }],
])("of %s is the same document, whichever member is odd", (table, doc) => {
  const same = (one: object): void =>
    expect(JSON.parse(docText(table, one as TableDocs[TableName]))).toEqual(JSON.parse(JSON.stringify(one)));
  same(doc);
  for (const [name, value] of Object.entries(doc)) {
    if (NULLABLE.includes(name)) same({ ...doc, [name]: null });
    if (typeof value === "string") for (const text of ODD) same({ ...doc, [name]: text });
    if (typeof value === "number") for (const number of ODD_NUMBERS) same({ ...doc, [name]: number });
  }
});

it.each<[TableName, object, number]>([
  [
    "runs",
    { ...RUN, ...NO_TREE, sandbox: undefined, plans: undefined, undo_left: undefined, acting: undefined },
    8,
  ],
  ["steps", { ...STEP, ...PLAIN_STEP, ...PLAIN_MORE, ...PLAIN_HASHES }, 7],
  ["run_tools", RUN_TOOL, 2],
])("of %s is what a change made of it, whichever member changed", (table, doc, changing) => {
  const told = (before: object, after: object): boolean => {
    const members = changedText(table, before as TableDocs[TableName], after as TableDocs[TableName]);
    if (members === undefined) return false;
    const text = withChange(docText(table, before as TableDocs[TableName]), members);
    expect(JSON.parse(text!)).toEqual(JSON.parse(JSON.stringify(after)));
    return true;
  };
  const short = new Set<string>();
  const whole = table === "runs" ? RUN : table === "steps" ? STEP : RUN_TOOL;
  for (const name of Object.keys(whole)) {
    for (const value of [null, ...ODD, ...ODD_NUMBERS, ["a"], true]) {
      const isSameKind = typeof value === typeof whole[name as keyof typeof whole];
      if (value !== null ? !isSameKind : !NULLABLE.includes(name)) continue;
      const other = { ...doc, [name]: value };
      if (told(doc, other)) short.add(name);
      told(other, doc);
      told(other, { ...other });
    }
  }
  expect(short.size, [...short].join()).toBe(changing);
});
