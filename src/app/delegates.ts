/** The loans that somebody holds: read before a unit that uses them, which checks them again inside. */
import { LIMITS } from "../kernel/limits.ts";
import type { Delegation } from "../model/approval.ts";
import type { App } from "./app.ts";

export async function delegationsTo(app: App, name: string): Promise<Delegation[]> {
  const rows = await app.core.store.list("delegations", {
    owner: name,
    tag: "active",
    limit: LIMITS.page_max,
  });
  return rows.map((row) => row.doc);
}
