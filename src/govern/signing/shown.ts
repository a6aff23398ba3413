/**
 * The part of a card that a signature covers: everything that the card draws, except the history, times and the age of
 * a proof. Its hash is keyed with a key of the request, so that it reveals no values without the card.
 */
import { hmacHex, keyedHash } from "../../kernel/hash.ts";
import { asJson, type JsonValue } from "../../kernel/json/json.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import type { CardContent } from "../cards/types.ts";
import type { RunDoc } from "../runs/run.ts";

function shownCard(
  run: Pick<RunDoc, "environment">,
  { id, run_id, actor, tenant, tool, kind, step, arg_names, approvers, internal }: ApprovalDoc,
  judged: CardContent,
): JsonValue {
  const head = { approval_id: id, run_id, actor, tenant, environment: run.environment, tool, kind, step };
  const who = { approvers, needs: internal.needs };
  return asJson({ ...head, arg_names, ...who, card: judged });
}

/** Key of a request's shown hash. People who see the card may know it. */
const shownKey = ({ salt }: Pick<RunDoc, "salt">, { id }: Pick<ApprovalDoc, "id">): string =>
  hmacHex(salt, `shown ${id}`);

/** What a signature covers, with the key and the hash, so that others can draw and hash it again. */
export interface ShownContent {
  key: string;
  hash: string;
  content: JsonValue;
}

type Shown = [run: Pick<RunDoc, "environment" | "salt">, approval: ApprovalDoc, judged: CardContent];

/** The key and the content, for a hash that was computed in a thread. */
export function shownCardContent(...[run, approval, judged]: Shown): Omit<ShownContent, "hash"> {
  return { key: shownKey(run, approval), content: shownCard(run, approval, judged) };
}

export function shownContent(...shown: Shown): ShownContent {
  const { key, content } = shownCardContent(...shown);
  return { key, hash: keyedHash(key, content), content };
}
