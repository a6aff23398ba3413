/**
 * Holders of consents at upstreams. A consent counts while its holder's credential is valid, and belongs to the tenant
 * that the holder has now.
 */

import { type CallerPrincipal, principalName } from "../../govern/roles.ts";
import { consentKey, followHolderUnit } from "../../govern/upstreams/consent.ts";
import type { UpstreamConsentDoc } from "../../govern/upstreams/consent-doc.ts";
import { unconfinedStore } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";

/** Whether the credential of the consent's holder is still valid. */
export function holderLives(app: ServiceApp, { holder }: UpstreamConsentDoc): boolean {
  if (holder === null || principalName(holder.principal).kind === "local") return true;
  return app.today(holder) !== null;
}

/** Whether the tokens belong to a key that is deleted, disabled or expired. */
export function isKeyOver(app: ServiceApp, doc: UpstreamConsentDoc): boolean {
  const isKey = doc.holder !== null && principalName(doc.holder.principal).kind === "key";
  // A process without the key file cannot tell that a key is gone.
  return doc.tokens !== null && isKey && app.keys !== null && !holderLives(app, doc);
}

/**
 * Gives the principal's consent the tenant and groups that the principal has now. Otherwise the admins of an earlier
 * tenant would see it, and those of the new one would not. Returns the consent.
 */
export async function followHolder(
  app: ServiceApp,
  upstream: string,
  principal: CallerPrincipal,
): Promise<UpstreamConsentDoc | undefined> {
  const store = unconfinedStore(app.core.store);
  const key = consentKey(upstream, principal.id);
  const doc = await store.get("upstream_consents", key);
  const unit = followHolderUnit(key, principal);
  return doc !== undefined && unit.changes(doc) ? store.transact(unit) : doc;
}

/** The app without the filter of a tenant, for what a caller asks about its own consent. */
export function withoutTenantFilter(app: ServiceApp): ServiceApp {
  const store = unconfinedStore(app.core.store);
  if (store === app.core.store) return app;
  const core = { ...app.core, store };
  return Object.create(app, { core: { value: core, enumerable: true } }) as ServiceApp;
}
