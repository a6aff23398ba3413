/**
 * A pin: what is remembered of a tool, its definition and the upstream that has its name. Pure functions
 * that say who holds a name and what becomes of its pin; nothing is written here.
 *
 * A name stays with the upstream that was first seen with it. Another that begins to offer it is refused,
 * whatever its definition and its place in the configuration, for as long as the first one has the name or
 * might: only when it is known not to offer it any more, or is no longer configured, the other counts as a
 * changed definition. A changed definition is accepted by approving the tool's manifest anew.
 */
import type { PinDoc } from "../port/docs.ts";
import type { Catalog, Route } from "./catalog.ts";

/** Everybody who offers one name. */
export interface Claim<R extends Offer = Route> {
  tool: string;
  offers: readonly R[];
  /** Of each configured upstream, whether its tools are known. */
  upstreams: Catalog["upstreams"];
}

type Offer = Pick<Route, "hash"> & { upstream: { name: string } };

/** Whose offer the name stands for, if any upstream's. */
export function pinHolder<R extends Offer>(known: PinDoc | undefined, claim: Claim<R>): R | undefined {
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

/** Several offer the name, and no pin says whose it is. */
export function isOwnerless(known: PinDoc | undefined, claim: Claim<Offer>): boolean {
  if (claim.offers.length < 2) return false;
  if (known?.upstream === undefined) return true;
  return pinHolder(known, claim) === undefined && !mightOffer(known.upstream, claim);
}

/** Configured, and its tools are not known: it may come with the tool any moment. */
function mightOffer(upstream: string, { upstreams }: Claim<Offer>): boolean {
  return upstreams.get(upstream) === false;
}

/** Whether the offer is another one than was approved. */
export function isChanged(known: PinDoc, { hash, upstream }: Offer): boolean {
  return known.hash !== hash || isMoved(known, upstream.name);
}

function isMoved({ upstream }: PinDoc, to: string): boolean {
  return upstream !== undefined && upstream !== to;
}

/** The same object where nothing is to be changed; undefined where there is nothing to pin yet. */
export function nextPin(
  known: PinDoc | undefined,
  claim: Claim<Offer>,
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

/** What is approved while its upstream is away is not approved for another upstream that turns up with the name. */
function unheld(known: PinDoc | undefined, manifest_hash: string | null): PinDoc | undefined {
  if (known === undefined || known.manifest_hash === manifest_hash) return known;
  return { ...known, manifest_hash };
}

function held(
  known: PinDoc | undefined,
  { tool, offers, upstreams }: Claim<Offer>,
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
    // A pin without an upstream learns it once every upstream has shown that it has no claim of its own.
    const learns =
      known.upstream === undefined && offers.length === 1 && [...upstreams.values()].every(Boolean);
    if (!learns && known.changed_hash === null && known.manifest_hash === manifest_hash) return known;
    const { changed_upstream: _, ...kept } = known;
    const settled = { ...kept, changed_ms: null, changed_hash: null, manifest_hash };
    return learns ? { ...settled, upstream: name } : settled;
  }
  // A person approved a manifest since, and did it for the tool as it is now.
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
