/**
 * A pin stores a tool's definition and the upstream that owns its name. These pure functions decide who owns a name and
 * how its pin changes. Nothing is written here.
 *
 * A name belongs to the upstream that first offered it. Offers of other upstreams are refused, independent of
 * definition and configuration order, while the first one offers the name or might offer it. Once it is known not to,
 * or is no longer configured, another upstream's offer counts as a changed definition. You accept a changed definition
 * by approving the tool's manifest again.
 */
import type { PinDoc } from "../../govern/port/docs.ts";
import type { ToolCatalog, ToolRoute } from "./catalog.ts";

/** All offers of one name. */
export interface NameClaim<R extends Offer = ToolRoute> {
  tool: string;
  offers: readonly R[];
  /** For each configured upstream, whether its tool list is known. */
  upstreams: ToolCatalog["upstreams"];
}

type Offer = Pick<ToolRoute, "hash"> & { upstream: { name: string } };

/** The offer that owns the name, if any. */
export function pinHolder<R extends Offer>(known: PinDoc | undefined, claim: NameClaim<R>): R | undefined {
  const { offers } = claim;
  const only = offers.length === 1 ? offers[0] : undefined;
  if (known === undefined) return only;
  if (known.upstream === undefined) {
    const same = offers.filter(({ hash }) => hash === known.hash);
    return same.length > 1 ? undefined : (same[0] ?? only);
  }
  const own = offers.find(({ upstream }) => upstream.name === known.upstream);
  return own ?? (mightOffer(known.upstream, claim) ? undefined : only);
}

/** Whether several upstreams offer the name and no pin decides between them. */
export function isUnassigned(known: PinDoc | undefined, claim: NameClaim<Offer>): boolean {
  if (claim.offers.length < 2) return false;
  if (known?.upstream === undefined) return true;
  return pinHolder(known, claim) === undefined && !mightOffer(known.upstream, claim);
}

/** Whether the upstream is configured and its tool list is unknown, so it may still offer the tool. */
function mightOffer(upstream: string, { upstreams }: NameClaim<Offer>): boolean {
  return upstreams.get(upstream) === false;
}

/** Whether the offer differs from the approved one. */
export function isChanged(known: PinDoc, { hash, upstream }: Offer): boolean {
  return known.hash !== hash || isMoved(known, upstream.name);
}

function isMoved({ upstream }: PinDoc, to: string): boolean {
  return upstream !== undefined && upstream !== to;
}

/** The pin after this claim: the same object if nothing changes, undefined if there is nothing to pin yet. */
export function nextPin(
  known: PinDoc | undefined,
  claim: NameClaim<Offer>,
  manifest_hash: string | null,
  now: number,
): PinDoc | undefined {
  const holder = pinHolder(known, claim);
  const next =
    holder === undefined ? unheld(known, manifest_hash) : held(known, claim, holder, manifest_hash, now);
  if (next === undefined) return undefined;
  const others = claim.offers.filter((offer) => offer !== holder).map(({ upstream }) => upstream.name);
  return withClaims(next, others, now);
}

/** An approval given while the upstream is away does not accept another upstream with the same name. */
function unheld(known: PinDoc | undefined, manifest_hash: string | null): PinDoc | undefined {
  if (known === undefined || known.manifest_hash === manifest_hash) return known;
  return { ...known, manifest_hash };
}

function held(
  known: PinDoc | undefined,
  { tool, offers, upstreams }: NameClaim<Offer>,
  { hash, upstream: { name } }: Offer,
  manifest_hash: string | null,
  now: number,
): PinDoc {
  const fresh: PinDoc = {
    tool,
    hash,
    upstream: name,
    first_seen_ms: now,
    changed_ms: null,
    changed_hash: null,
    manifest_hash,
  };
  if (known === undefined) return fresh;
  const moved = isMoved(known, name);
  if (known.hash === hash && !moved) {
    // A pin without an upstream gets one after every upstream has listed its tools and only this one offers the name.
    const learns =
      known.upstream === undefined && offers.length === 1 && [...upstreams.values()].every(Boolean);
    if (!learns && known.changed_hash === null && known.manifest_hash === manifest_hash) return known;
    const { changed_upstream: _, ...kept } = known;
    const settled = { ...kept, changed_ms: null, changed_hash: null, manifest_hash };
    return learns ? { ...settled, upstream: name } : settled;
  }
  // A newly approved manifest accepts the tool as it is now.
  if (manifest_hash !== null && manifest_hash !== known.manifest_hash) return fresh;
  const from = moved ? name : undefined;
  if (known.changed_hash === hash && known.changed_upstream === from) return known;
  const { changed_upstream: _, ...kept } = known;
  const changed = { ...kept, changed_ms: now, changed_hash: hash };
  return from === undefined ? changed : { ...changed, changed_upstream: from };
}

function withClaims(pin: PinDoc, by: readonly string[], now: number): PinDoc {
  const before = pin.claimed?.by ?? [];
  if (before.length === by.length && by.every((name) => before.includes(name))) return pin;
  const { claimed, ...rest } = pin;
  if (by.length === 0) return rest;
  const begun = by.some((name) => !before.includes(name));
  return { ...rest, claimed: { by, since_ms: begun ? now : (claimed?.since_ms ?? now) } };
}
