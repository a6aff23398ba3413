/**
 * Pins: a tool's definition is remembered when it is first seen, and a manifest was written for that
 * definition and no other. When the definition changes, the change is noted and, in enforce mode, the
 * tool is out of reach until its manifest was approved anew, which is: until another approved manifest
 * is in force than the one that stood beside the old definition.
 */
import type { Core } from "../engine/core.ts";
import type { ManifestSet } from "../model/manifest/types.ts";
import type { PinDoc } from "../store/docs.ts";
import type { Route } from "./catalog.ts";

export const CHANGED_REASON =
  "the definition of this tool changed since it was first seen; it stays blocked until its manifest is approved anew";

export class Pins {
  private readonly core: Core;
  private readonly pins = new Map<string, PinDoc>();
  private checked: { routes: ReadonlyMap<string, Route>; manifests: ManifestSet } | null = null;
  private work: Promise<void> = Promise.resolve();

  constructor(core: Core) {
    this.core = core;
  }

  /** Whether the tool is another one than it was when it was approved. */
  changed(route: Route): boolean {
    const pin = this.pins.get(route.tool);
    return pin !== undefined && pin.hash !== route.hash;
  }

  /** Brings the pins up to what is offered and declared now; costs nothing while both are as they were. */
  async check(routes: ReadonlyMap<string, Route>): Promise<void> {
    const { manifests } = this.core.rules();
    if (this.checked?.routes === routes && this.checked.manifests === manifests) return;
    const before = this.work;
    this.work = before.then(() => this.compare(routes, manifests));
    try {
      await this.work;
    } finally {
      this.work = this.work.catch(() => {});
    }
  }

  private async compare(routes: ReadonlyMap<string, Route>, manifests: ManifestSet): Promise<void> {
    if (this.checked?.routes === routes && this.checked.manifests === manifests) return;
    const due: { route: Route; manifest_hash: string | null }[] = [];
    for (const route of routes.values()) {
      const manifest_hash = approvedHash(manifests, route.tool);
      const pin = this.pins.get(route.tool);
      const same =
        pin?.hash === route.hash && pin.manifest_hash === manifest_hash && pin.changed_hash === null;
      if (!same) due.push({ route, manifest_hash });
    }
    const pinned = await Promise.all(due.map(({ route, manifest_hash }) => this.pin(route, manifest_hash)));
    for (const pin of pinned) this.pins.set(pin.tool, pin);
    this.checked = { routes, manifests };
  }

  private pin(route: Route, manifest_hash: string | null): Promise<PinDoc> {
    const { store, env } = this.core;
    return store.transact({
      needs: [["pins", route.tool]],
      run(tx) {
        const known = tx.get("pins", route.tool);
        const next = nextPin(known, route, manifest_hash, env.now());
        if (next !== known) tx.put("pins", route.tool, next);
        return next;
      },
    });
  }
}

export function nextPin(
  known: PinDoc | undefined,
  route: Pick<Route, "tool" | "hash">,
  manifest_hash: string | null,
  now: number,
): PinDoc {
  const { tool, hash } = route;
  const fresh: PinDoc = {
    tool,
    hash,
    first_seen_ms: now,
    changed_ms: null,
    changed_hash: null,
    manifest_hash,
  };
  if (known === undefined) return fresh;
  if (known.hash === hash) {
    const settled = known.changed_hash === null && known.manifest_hash === manifest_hash;
    return settled ? known : { ...known, changed_ms: null, changed_hash: null, manifest_hash };
  }
  // Somebody approved a manifest since: they did it for the tool as it is now.
  if (manifest_hash !== null && manifest_hash !== known.manifest_hash) return fresh;
  if (known.changed_hash === hash) return known;
  return { ...known, changed_ms: now, changed_hash: hash };
}

/** A draft or a deprecated manifest accepts nothing. */
function approvedHash(manifests: ManifestSet, tool: string): string | null {
  const manifest = manifests.active(tool);
  return manifest?.lifecycle === "approved" ? manifests.hashOf(manifest) : null;
}
