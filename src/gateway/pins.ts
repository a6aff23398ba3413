/**
 * Pins: a tool's definition and upstream are remembered when it is first seen, and a manifest was written
 * for that and nothing else. What came to be different is noted and, in enforce mode, out of reach until
 * the manifest was approved anew, which is: until another approved manifest is in force than the one that
 * stood beside the pin. The routes that may be used at all come from here, one upstream a name.
 */
import type { Core } from "../engine/core.ts";
import type { ManifestSet } from "../model/manifest/types.ts";
import type { PinDoc } from "../port/docs.ts";
import { type Catalog, NO_CATALOG, type Route } from "./catalog.ts";
import { type Claim, isChanged, isOwnerless, nextPin, pinHolder } from "./pin.ts";

const CHANGED_REASON =
  "the definition of this tool changed since it was first seen; it stays blocked until its manifest is approved anew";
const MOVED_REASON =
  "another upstream offers this tool than the one it was first seen at; it stays blocked until its manifest is approved anew";

interface View {
  catalog: Catalog;
  manifests: ManifestSet | null;
  routes: ReadonlyMap<string, Route>;
  /** Names that are refused to an upstream, and why. */
  refusals: readonly string[];
}

export class Pins {
  private readonly core: Core;
  private readonly pins = new Map<string, PinDoc>();
  private view: View = { catalog: NO_CATALOG, manifests: null, routes: new Map(), refusals: [] };
  private work: Promise<void> = Promise.resolve();

  constructor(core: Core) {
    this.core = core;
  }

  /** By shown name, the one upstream that has it, as of the last check. */
  get routes(): ReadonlyMap<string, Route> {
    return this.view.routes;
  }

  get refusals(): readonly string[] {
    return this.view.refusals;
  }

  /** Why the tool is not the one that was approved; null where it is. */
  objection(route: Route): string | null {
    const pin = this.pins.get(route.tool);
    if (pin === undefined || !isChanged(pin, route)) return null;
    return pin.changed_upstream === undefined ? CHANGED_REASON : MOVED_REASON;
  }

  /** Names that several upstreams offer, before any pin says whose they are. */
  async ownerless(catalog: Catalog): Promise<string[]> {
    const found: string[] = [];
    for (const claim of claims(catalog)) {
      if (claim.offers.length < 2) continue;
      if (isOwnerless(await this.core.store.get("pins", claim.tool), claim)) found.push(clash(claim));
    }
    return found;
  }

  /** Brings the pins up to what is offered and declared now; costs nothing while both are as they were. */
  async check(catalog: Catalog): Promise<void> {
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

  private isChecked(catalog: Catalog, manifests: ManifestSet): boolean {
    return this.view.catalog === catalog && this.view.manifests === manifests;
  }

  private async compare(catalog: Catalog, manifests: ManifestSet): Promise<void> {
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

  private pin(claim: Claim, manifest_hash: string | null): Promise<PinDoc | undefined> {
    const { store, env } = this.core;
    return store.transact({
      needs: [["pins", claim.tool]],
      run(tx) {
        const known = tx.get("pins", claim.tool);
        const next = nextPin(known, claim, manifest_hash, env.now());
        if (next !== undefined && next !== known) tx.put("pins", claim.tool, next);
        return next;
      },
    });
  }

  private resolve(all: readonly Claim[]): Pick<View, "routes" | "refusals"> {
    const routes = new Map<string, Route>();
    const refusals: string[] = [];
    for (const claim of all) {
      const pin = this.pins.get(claim.tool);
      const holder = pinHolder(pin, claim);
      if (holder !== undefined) routes.set(claim.tool, holder);
      if (isOwnerless(pin, claim)) refusals.push(clash(claim));
      else if (pin?.claimed !== undefined) refusals.push(refusal(pin, pin.claimed.by));
    }
    return { routes, refusals };
  }
}

function* claims({ offers, upstreams }: Catalog): Generator<Claim> {
  for (const [tool, routes] of offers) yield { tool, offers: routes, upstreams };
}

function clash({ tool, offers }: Claim): string {
  const names = offers.map(({ upstream }) => upstream.name).join(" and ");
  return `upstreams ${names} both offer tool ${JSON.stringify(tool)}; set namespace: true for one of them`;
}

function refusal({ tool, upstream }: PinDoc, by: readonly string[]): string {
  return `upstream ${by.join(", ")}: offers tool ${JSON.stringify(tool)}, which upstream ${upstream} has; set namespace: true for one of them`;
}

/** A draft or a deprecated manifest accepts nothing. */
function approvedHash(manifests: ManifestSet, tool: string): string | null {
  const manifest = manifests.active(tool);
  return manifest?.lifecycle === "approved" ? manifests.hashOf(manifest) : null;
}
