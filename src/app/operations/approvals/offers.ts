/** What was offered in place of a denied call: to the run's principal and to those who decide alone. */
import type { Json } from "../../../kernel/json.ts";
import type { ApprovalDoc } from "../../../model/approval.ts";
import { withPlainMasks } from "../../../model/mask.ts";
import type { Principal } from "../../../model/roles.ts";
import type { App } from "../../app.ts";
import { delegationsTo } from "../../door/access.ts";
import { seesCard } from "./cards.ts";

export interface OfferView {
  approval_id: string;
  /** Null once the offer was used, or has ended. */
  args: Json;
}

export async function offerOn(
  app: App,
  principal: Principal,
  approval: ApprovalDoc,
): Promise<OfferView | undefined> {
  const id = approval.internal.offer;
  if (id === undefined) return undefined;
  const offered = await app.core.store.get("approvals", id);
  if (offered === undefined) return undefined;
  const asks = approval.internal.principal === principal.id;
  if (!asks && !seesCard(app, principal, offered, await delegationsTo(app, principal.name))) return undefined;
  const over = app.core.env.now() >= offered.expires_ms;
  const values = over ? undefined : await app.core.store.get("approval_values", id);
  // Whoever asked needs them to the letter; a decider sees them as on the card.
  if (asks) return { approval_id: id, args: values?.offer ?? null };
  return { approval_id: id, args: values === undefined ? null : withPlainMasks(values.args) };
}
