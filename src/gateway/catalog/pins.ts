/**
 * Pins each tool's definition and upstream when the gateway first sees it, because a manifest was written for exactly
 * that tool. A change is recorded, and blocks the tool in enforce mode until a different approved manifest is active.
 * This class also provides all usable routes, one upstream for each name.
 */

import type { EngineCore } from "../../govern/core.ts";
import type { PinDoc } from "../../govern/port/docs.ts";
import { findPin, updatePin } from "../../operations/registry/pins.ts";
import type { ManifestSet } from "../../rules/manifest/types.ts";
import { NO_CATALOG, type ToolCatalog, type ToolRoute } from "./catalog.ts";
import { isChanged, isUnassigned, type NameClaim, nextPin, pinHolder } from "./pin.ts";

const CHANGED_REASON =
  "the definition of this tool changed since it was first seen; it stays blocked until its manifest is approved again";
const MOVED_REASON =
  "another upstream offers this tool than the one it was first seen at; it stays blocked until its manifest is approved again";

interface View {
  catalog: ToolCatalog;
  manifests: ManifestSet | null;
  routes: ReadonlyMap<string, ToolRoute>;
  /** Offers that are refused, with reasons. */
  refusals: readonly string[];
}

export class ToolPins {
  private readonly core: EngineCore;
  private readonly pins = new Map<string, PinDoc>();
  private view: View = { catalog: NO_CATALOG, manifests: null, routes: new Map(), refusals: [] };
  private work: Promise<void> = Promise.resolve();

  constructor(core: EngineCore) {
    this.core = core;
  }

  /** The owning route of each shown name, as of the last check. */
  get routes(): ReadonlyMap<string, ToolRoute> {
    return this.view.routes;
  }

  get refusals(): readonly string[] {
    return this.view.refusals;
  }

  /** Explains how the tool differs from the approved one. Null if it does not. */
  objection(route: ToolRoute): string | null {
    const pin = this.pins.get(route.tool);
    if (pin === undefined || !isChanged(pin, route)) return null;
    return pin.changed_upstream === undefined ? CHANGED_REASON : MOVED_REASON;
  }

  /** Names that several upstreams offer and no pin assigns yet. */
  async ownerless(catalog: ToolCatalog): Promise<string[]> {
    const found: string[] = [];
    for (const claim of claims(catalog)) {
      if (claim.offers.length < 2) continue;
      if (isUnassigned(await findPin(this.core, claim.tool), claim)) found.push(clash(claim));
    }
    return found;
  }

  /** Updates the pins to the current offers and manifests. Cheap while both are unchanged. */
  async check(catalog: ToolCatalog): Promise<void> {
    const { manifests } = this.core.rules();
    if (this.isChecked(catalog, manifests)) return;
    const before = this.work;
    this.work = before.then(() => this.compare(catalog, manifests));
    try {
      await this.work;
    } finally {
      this.work = this.work.catch(() => {});
    }
  }

  private isChecked(catalog: ToolCatalog, manifests: ManifestSet): boolean {
    return this.view.catalog === catalog && this.view.manifests === manifests;
  }

  private async compare(catalog: ToolCatalog, manifests: ManifestSet): Promise<void> {
    if (this.isChecked(catalog, manifests)) return;
    const all = [...claims(catalog)];
    const due = all.filter((claim) => {
      const known = this.pins.get(claim.tool);
      return known === undefined || nextPin(known, claim, approvedHash(manifests, claim.tool), 0) !== known;
    });
    const pinned = await Promise.all(
      due.map((claim) => this.pin(claim, approvedHash(manifests, claim.tool))),
    );
    for (const pin of pinned) if (pin !== undefined) this.pins.set(pin.tool, pin);
    this.view = { catalog, manifests, ...this.resolve(all) };
  }

  private pin(claim: NameClaim, manifest_hash: string | null): Promise<PinDoc | undefined> {
    return updatePin(this.core, claim.tool, (known, now) => nextPin(known, claim, manifest_hash, now));
  }

  private resolve(all: readonly NameClaim[]): Pick<View, "routes" | "refusals"> {
    const routes = new Map<string, ToolRoute>();
    const refusals: string[] = [];
    for (const claim of all) {
      const pin = this.pins.get(claim.tool);
      const holder = pinHolder(pin, claim);
      if (holder !== undefined) routes.set(claim.tool, holder);
      if (isUnassigned(pin, claim)) refusals.push(clash(claim));
      else if (pin?.claimed !== undefined) refusals.push(refusal(pin, pin.claimed.by));
    }
    return { routes, refusals };
  }
}

function* claims({ offers, upstreams }: ToolCatalog): Generator<NameClaim> {
  for (const [tool, routes] of offers) yield { tool, offers: routes, upstreams };
}

function clash({ tool, offers }: NameClaim): string {
  const names = offers.map(({ upstream }) => upstream.name).join(" and ");
  return `upstreams ${names} both offer tool ${JSON.stringify(tool)}; set namespace: true for one of them`;
}

function refusal({ tool, upstream }: PinDoc, by: readonly string[]): string {
  return `upstream ${by.join(", ")}: offers tool ${JSON.stringify(tool)}, which upstream ${upstream} has; set namespace: true for one of them`;
}

/** Hash of the active manifest. Null for drafts and deprecated manifests, which accept no definition. */
function approvedHash(manifests: ManifestSet, tool: string): string | null {
  const manifest = manifests.active(tool);
  return manifest?.lifecycle === "approved" ? manifests.hashOf(manifest) : null;
}
