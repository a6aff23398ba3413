/** Collects the facts for a request's card, under the active rules. */
import type { PausableWork } from "../../kernel/pausable-work.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import type { ActiveRules } from "../core.ts";
import type { RunDoc } from "../runs/run.ts";
import type { CardFacts, CardSubject } from "./card-facts.ts";
import { readStoredValues, type StoredValues } from "./stored-values.ts";
import type { ApprovalValues, CardContent, RequestedCall } from "./types.ts";
import { computingVisibleArgs, computingVisibleBefore } from "./visible-values.ts";

/** Fields of the run that a card needs. */
export type CardRun = Pick<RunDoc, "reason" | "salt" | "environment">;

export function cardSubject(
  { manifests, policy }: ActiveRules,
  { reason, salt, environment }: CardRun,
  { kind, tool, step, args_hash, arg_names, reason: asked, rule, internal }: ApprovalDoc,
): CardSubject {
  const manifest = manifests.active(tool) ?? null;
  const { because, undo } = internal;
  // For an undo, the manifest of the original call declares the `before` read.
  const read_for = undo === undefined ? manifest : (manifests.active(undo.of) ?? null);
  const call = { kind, tool, step, args_hash, arg_names, reason: asked, rule, because, undo };
  return {
    call,
    run: { reason, salt, environment },
    manifest,
    read_for,
    reader: read_for?.before === undefined ? null : (manifests.active(read_for.before.tool) ?? null),
    rule: ruleOf(call, policy),
    names_only: policy.approvals.show === "names",
  };
}

const SECTIONS = ["rules", "limits", "budgets", "windows", "freezes"] as const;

function ruleOf({ rule, because }: RequestedCall, policy: ActiveRules["policy"]): CardContent["rule"] {
  if (rule === null) return null;
  const said = because?.causes.find((cause) => cause.rule === rule)?.reason;
  if (said !== undefined) return { id: rule, reason: said };
  const entries: { id: string; reason?: string | undefined }[] = SECTIONS.flatMap((name) => [
    ...(policy.doc[name] ?? []),
  ]);
  return { id: rule, reason: entries.find(({ id }) => id === rule)?.reason ?? null };
}

export function* gatheringCardFacts(
  { reader, names_only, ...subject }: CardSubject,
  stored: StoredValues | undefined,
): PausableWork<CardFacts> {
  if (stored === undefined || names_only) return { ...subject, values: undefined };
  return { ...subject, values: yield* shownNow(subject, reader, readStoredValues(stored)) };
}

/** Values stored when the request was opened, masked by the current manifests. */
function* shownNow(
  { manifest, read_for }: Pick<CardSubject, "manifest" | "read_for">,
  reader: CardSubject["reader"],
  values: ApprovalValues,
): PausableWork<ApprovalValues> {
  const { before, restored } = values;
  return {
    ...values,
    args: yield* computingVisibleArgs(values.args, manifest),
    ...(before === undefined ? {} : { before: yield* computingVisibleBefore(before, read_for, reader) }),
    ...(restored === undefined
      ? {}
      : { restored: yield* computingVisibleBefore(restored, read_for, reader) }),
  };
}
