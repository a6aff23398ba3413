/** Parts of the policy schema that several sections share: matches, approval terms and conditions. */
import * as z from "zod";
import { argsPath, describeField, globSchema, groupSchema, inWords, policyDurationSchema } from "./fields.ts";
import { OP_NAMES } from "./ops/table.ts";

/** `whose` names the calls that the match selects. */
export const matchOf = (whose: string) =>
  z.strictObject({
    tool: describeField(globSchema, `glob over the tool name of ${whose}`, inWords("any")).optional(),
    actor: describeField(globSchema, "glob over the name of the calling agent", inWords("any")).optional(),
    acting: describeField(
      globSchema,
      "glob over the names of those who act for the agent's user; one match is enough",
      inWords("any"),
    ).optional(),
    tenant: describeField(globSchema, 'glob over the tenant; "?*" requires one', inWords("any")).optional(),
    environment: describeField(
      globSchema,
      "glob over the environment of the service, such as `prod`",
      inWords("any"),
    ).optional(),
    effect: describeField(
      globSchema,
      "glob over the effect that the manifest declares",
      inWords("any"),
    ).optional(),
    data_class: describeField(
      globSchema,
      "glob over the data class that the manifest declares",
      inWords("any"),
    ).optional(),
    source: describeField(
      globSchema,
      "glob over the labels of the data that the tool reads",
      inWords("any"),
    ).optional(),
    sink: describeField(
      globSchema,
      "glob over the labels of the places that the tool writes to",
      inWords("any"),
    ).optional(),
  });

export const matchSchema = matchOf("the covered calls");
export const optionalMatch = describeField(
  matchSchema,
  "calls that this entry covers; fields that you omit match every call",
  inWords("every call"),
);

const groups = z.array(groupSchema).max(50);
const fromApprovals = inWords("as in `approvals`");
/** Approval terms, with the built-in defaults for the policy or without them for one entry. */
export const approvalOf = (defaults?: { ttl: string }) => {
  const byDefault = (value: unknown) => (defaults === undefined ? fromApprovals : value);
  return z.strictObject({
    groups: describeField(
      groups,
      "groups that can decide; without it, any approver can",
      byDefault([]),
    ).optional(),
    quorum: describeField(
      z.int().min(1).max(100),
      "number of different people who must approve",
      byDefault(1),
    ).optional(),
    ttl: describeField(
      policyDurationSchema,
      "time until an undecided request expires",
      byDefault(defaults?.ttl),
    ).optional(),
    escalate_after: describeField(
      policyDurationSchema,
      "time after which a pending request escalates",
      byDefault(inWords("never")),
    ).optional(),
    escalate_to: describeField(
      groups,
      "groups that can also decide after the escalation",
      byDefault([]),
    ).optional(),
    signed: describeField(
      z.boolean(),
      "count only decisions that a person signed with a passkey",
      byDefault(false),
    ).optional(),
  });
};
export const approvalSchema = approvalOf();
export const approvalTerms = describeField(
  approvalSchema,
  "who must approve, if the action is `require_approval`",
  fromApprovals,
);

const condition = z.strictObject({
  path: describeField(argsPath, "argument to compare, such as `$args.amount`"),
  op: describeField(z.enum(OP_NAMES), "comparison operator"),
  value: describeField(z.unknown(), "operand; `exists` and `absent` take none").optional(),
});
export const conditionList = z.array(condition).max(100);
