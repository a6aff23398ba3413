/** Counter-proposals for denied calls, shown to the run's principal and to those who see the card. */

import { runInSlices } from "../../child-process/event-loop-slices.ts";
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { storedValue } from "../../govern/cards/stored-values.ts";
import { isExpired } from "../../govern/expiry.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { type JsonOrText, JsonTextValue } from "../../kernel/json/json-text-value.ts";
import { withPlainMasks } from "../../rules/redact/mask.ts";
import type { ServiceApp } from "../app.ts";
import { delegationsTo } from "../pipeline/access.ts";
import { maskLargeText } from "../values/threads.ts";
import { seesCard } from "./cards.ts";

export interface OfferView {
  approval_id: string;
  /** Null once the offer is used or has ended. */
  args: JsonOrText;
}

export async function offerForRequest(
  app: ServiceApp,
  principal: CallerPrincipal,
  approval: ApprovalDoc,
): Promise<OfferView | undefined> {
  const id = approval.internal.offer;
  if (id === undefined) return undefined;
  const offered = await app.core.store.get("approvals", id);
  if (offered === undefined) return undefined;
  const asks = approval.internal.principal === principal.id;
  if (!asks && !seesCard(app, principal, offered, await delegationsTo(app, principal.name))) return undefined;
  const over = isExpired(offered, app.core.env.now());
  const values = over ? undefined : await app.core.store.get("approval_values", id);
  const args = values && storedValue(values, asks ? "offer" : "args");
  // The agent needs the exact arguments; an approver sees them masked, as on the card.
  return { approval_id: id, args: args === undefined ? null : asks ? args : await withoutSizes(args) };
}

const withoutSizes = (args: JsonOrText): Promise<JsonOrText> =>
  args instanceof JsonTextValue ? maskLargeText(args) : runInSlices(withPlainMasks(args));
