/**
 * Consents of principals at upstreams. A link, a sign-in and the tokens that it ends in are one document, so that each
 * link and each sign-in counts once across all processes. The tokens are here only in encrypted form.
 */
import { conflictError, notFoundError } from "../../kernel/errors.ts";
import { sameSecret, sha256Hex } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { EngineCore } from "../core.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import {
  type CallerPrincipal,
  hasRole,
  principalName,
  type StoredPrincipal,
  seesTenant,
  tenantBinding,
  tokenId,
  toStoredPrincipal,
} from "../roles.ts";
import type { ConsentTokens, SealedText, UpstreamConsentDoc } from "./consent-doc.ts";

/** The name of the service in the list of who is connected. */
const SERVICE_HOLDER = "the service";
/** Links keep this much time when they are handed out again. */
const LINK_LEFT_MS = 60_000;
const REFRESH_MS = 30_000;
const MAX_TOOLS = 50;
const REVOKE_TRIES = 10;

/** Whose consent a connection needs: of a principal, or of an admin for the service itself. */
export interface ConsentHolder {
  upstream: string;
  /** Null for the service. */
  principal: CallerPrincipal | null;
}

interface ConsentChange {
  doc: UpstreamConsentDoc;
  records: LedgerRecord[];
}

/** Document key of a holder's consent. */
export const consentKey = (upstream: string, principal: string | null): string =>
  sha256Hex(JSON.stringify([upstream, principal])).slice(0, 32);

const ID = /^ups_([0-9a-f]{32})$/;

/** Document key of a consent's id. */
export const consentKeyOf = (id: string): string | undefined => ID.exec(id)?.[1];

const unknownConsent = () => notFoundError("nobody is connected under this id", "unknown_connection");

const linkEnded = () =>
  conflictError("link_used", "this link was used, or it is older than ten minutes; make the call again");

/** Whether this signed-in person can give or end the consent. */
export function canConsent(
  person: CallerPrincipal,
  { holder, tenant }: Pick<UpstreamConsentDoc, "holder" | "tenant">,
): boolean {
  const isAdmin = hasRole(person, "admin") && seesTenant(person, tenant);
  if (holder === null) return isAdmin && tenantBinding(person) === null;
  if (person.id === holder.principal) return true;
  const { kind, issuer, name } = principalName(holder.principal);
  // An agent that acts for a person uses that person's account, so the person consents.
  if (kind === "act") return person.id === tokenId(issuer!, (JSON.parse(name) as string[])[0]!);
  return kind !== "oidc" && isAdmin;
}

function freshConsent(core: EngineCore, { upstream, principal }: ConsentHolder): UpstreamConsentDoc {
  return {
    id: `ups_${consentKey(upstream, principal?.id ?? null)}`,
    upstream,
    holder: principal === null ? null : toStoredPrincipal(principal),
    name: principal?.name ?? SERVICE_HOLDER,
    tenant: principal?.tenant ?? null,
    created_ms: core.env.now(),
    link: null,
    flow: null,
    tokens: null,
    wanted: {},
    refreshing: null,
    ended: [],
  };
}

const sameNames = (a: readonly string[], b: readonly string[]): boolean =>
  [...a].sort().join("\n") === [...b].sort().join("\n");

const isSameHolder = (a: StoredPrincipal | null, b: StoredPrincipal | null): boolean =>
  a?.principal === b?.principal && a?.credential === b?.credential;

const isUnchanged = (a: StoredPrincipal | null, b: StoredPrincipal): boolean =>
  a?.tenant === b.tenant && sameNames(a?.groups ?? [], b.groups);

/**
 * The document as the caller's own. Links and sign-ins of an earlier credential of the same name end, because another
 * account would finish them.
 */
function ownConsent(
  core: EngineCore,
  who: ConsentHolder,
  known: UpstreamConsentDoc | undefined,
): UpstreamConsentDoc {
  const fresh = freshConsent(core, who);
  if (known === undefined) return fresh;
  if (known.tokens !== null) return known;
  const { holder, name, tenant } = fresh;
  const stays = isSameHolder(known.holder, holder) && known.tenant === tenant;
  return { ...known, holder, name, tenant, ...(stays ? {} : { link: null, flow: null }) };
}

/** Offers a link to the holder. A link that still has time is the same one again. */
export function offerLinkUnit(
  core: EngineCore,
  who: ConsentHolder,
  scopes: readonly string[],
): UnitOfWork<UpstreamConsentDoc> {
  const key = consentKey(who.upstream, who.principal?.id ?? null);
  const nonce = Buffer.from(core.env.bytes(16)).toString("hex");
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = ownConsent(core, who, tx.get("upstream_consents", key));
      const now = core.env.now();
      const { link } = doc;
      const isLive = link !== null && !isExpired({ expires_ms: link.expires_ms - LINK_LEFT_MS }, now);
      const again = isLive && sameNames(link.scopes, scopes);
      const expires_ms = now + SERVICE_LIMITS.connect_link_ms;
      const changed: UpstreamConsentDoc = {
        ...doc,
        link: again ? link : { nonce, expires_ms, scopes: [...scopes] },
      };
      tx.put("upstream_consents", key, changed);
      return changed;
    },
  };
}

/** Gives a consent the tenant and groups of its holder, if the holder is this principal with this credential. */
export function followHolderUnit(
  key: string,
  principal: CallerPrincipal,
): UnitOfWork<UpstreamConsentDoc | undefined> & { changes(doc: UpstreamConsentDoc): boolean } {
  const holder = toStoredPrincipal(principal);
  const { tenant } = principal;
  const changes = (doc: UpstreamConsentDoc) =>
    isSameHolder(doc.holder, holder) && (doc.tenant !== tenant || !isUnchanged(doc.holder, holder));
  return {
    changes,
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined || !changes(doc)) return doc;
      const changed = { ...doc, holder, tenant };
      tx.put("upstream_consents", key, changed);
      return changed;
    },
  };
}

/** Whether the link is the offered one and still works. */
export function isLinkLive(core: EngineCore, { link }: UpstreamConsentDoc, nonce: string): boolean {
  return link !== null && sameSecret(link.nonce, nonce) && !isExpired(link, core.env.now());
}

/** Uses the link up, and begins its sign-in. */
export function beginFlowUnit(
  core: EngineCore,
  { key, nonce }: { key: string; nonce: string },
  flow: Pick<NonNullable<UpstreamConsentDoc["flow"]>, "state_hash" | "session_hash" | "sealed">,
): UnitOfWork<UpstreamConsentDoc> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined || !isLinkLive(core, doc, nonce)) throw linkEnded();
      const expires_ms = core.env.now() + SERVICE_LIMITS.connect_link_ms;
      const changed = { ...doc, link: null, flow: { ...flow, expires_ms } };
      tx.put("upstream_consents", key, changed);
      return changed;
    },
  };
}

/** Ends the sign-in with this state, so that its response counts once. Null if there is none. */
export function takeFlowUnit(
  core: EngineCore,
  key: string,
  state_hash: string,
): UnitOfWork<UpstreamConsentDoc | null> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      const flow = doc?.flow ?? null;
      if (doc === undefined || flow === null || isExpired(flow, core.env.now())) return null;
      if (!sameSecret(flow.state_hash, state_hash)) return null;
      tx.put("upstream_consents", key, { ...doc, flow: null });
      return doc;
    },
  };
}

const shownScopes = (scopes: readonly string[]): string =>
  scopes.length === 0 ? "without scopes" : `scopes ${scopes.join(" ")}`;

const whoText = ({ upstream, holder, name }: UpstreamConsentDoc): string =>
  `upstream ${upstream}, ${holder === null ? name : `principal ${holder.principal}`}`;

function recordOf(core: EngineCore, tx: StoreTx, doc: UpstreamConsentDoc, by: string, ended?: string) {
  return tx.append({
    event: ended === undefined ? "upstream_connected" : "upstream_revoked",
    actor: by,
    ts_ms: core.env.now(),
    ...(doc.tenant === null ? {} : { tenant: doc.tenant }),
    detail: `${whoText(doc)}, ${shownScopes(doc.tokens?.scopes ?? [])}${ended === undefined ? "" : `: ${ended}`}`,
  });
}

/** Stores the tokens of a finished sign-in. */
export function connectUnit(
  core: EngineCore,
  key: string,
  tokens: Omit<ConsentTokens, "connected_ms">,
): UnitOfWork<ConsentChange> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined) throw unknownConsent();
      const connected_ms = core.env.now();
      const changed = { ...doc, tokens: { ...tokens, connected_ms }, wanted: {}, refreshing: null };
      tx.put("upstream_consents", key, changed);
      return { doc: changed, records: [recordOf(core, tx, changed, tokens.connected_by)] };
    },
  };
}

/** Claims the refresh of these tokens. Returns the current document, and whether the claim is ours. */
export function claimRefreshUnit(
  core: EngineCore,
  { key, by, sealed }: { key: string; by: string; sealed: SealedText },
): UnitOfWork<{ doc: UpstreamConsentDoc; mine: boolean } | null> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined || doc.tokens === null) return null;
      const now = core.env.now();
      const isTaken = doc.refreshing !== null && !isExpired(doc.refreshing, now);
      if (isTaken || doc.tokens.sealed.text !== sealed.text) return { doc, mine: false };
      const changed = { ...doc, refreshing: { by, expires_ms: now + REFRESH_MS } };
      tx.put("upstream_consents", key, changed);
      return { doc: changed, mine: true };
    },
  };
}

/** Stores refreshed tokens, unless the consent has ended. Null tokens give the claim back. */
export function storeRefreshUnit(
  key: string,
  by: string,
  tokens: Pick<ConsentTokens, "sealed" | "scopes" | "expires_ms"> | null,
): UnitOfWork<boolean> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined) return false;
      if (doc.tokens === null || doc.refreshing?.by !== by) {
        // Tokens that came too late are not used, so they are revoked.
        const late = tokens === null ? [] : [{ sealed: tokens.sealed, tries: 0 }];
        tx.put("upstream_consents", key, { ...doc, ended: [...doc.ended, ...late] });
        return false;
      }
      const now = tokens === null ? doc.tokens : { ...doc.tokens, ...tokens };
      tx.put("upstream_consents", key, { ...doc, tokens: now, refreshing: null });
      return true;
    },
  };
}

/** Notes the scopes that a tool of the upstream needs. */
export function wantScopesUnit(key: string, tool: string, scopes: readonly string[]): UnitOfWork<void> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined || doc.tokens === null) return;
      const rest = Object.entries(doc.wanted).filter(([name]) => name !== tool);
      const entry: [string, string[]] = [tool, [...scopes]];
      const wanted = Object.fromEntries([...rest, entry].slice(-MAX_TOOLS));
      tx.put("upstream_consents", key, { ...doc, wanted });
    },
  };
}

/** Ends a consent. Its tokens stay encrypted until they are revoked at the issuer. */
export function endConsentUnit(
  core: EngineCore,
  key: string,
  { by, why, may }: { by: string; why: string; may?: (doc: UpstreamConsentDoc) => boolean },
): UnitOfWork<ConsentChange> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined || doc.tokens === null || may?.(doc) === false) throw unknownConsent();
      const ended = [...doc.ended, { sealed: doc.tokens.sealed, tries: 0 }];
      const changed = { ...doc, tokens: null, link: null, flow: null, wanted: {}, refreshing: null, ended };
      tx.put("upstream_consents", key, changed);
      return { doc: changed, records: [recordOf(core, tx, doc, by, why)] };
    },
  };
}

/** Deletes ended tokens after they were revoked, or counts a failed try. Removes a document that holds nothing. */
export function settleEndedUnit(
  core: EngineCore,
  key: string,
  tried: ReadonlyMap<string, boolean>,
): UnitOfWork<void> {
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined) return;
      const ended = doc.ended.flatMap((one) => {
        const done = tried.get(one.sealed.text);
        if (done === undefined) return [one];
        return done || one.tries + 1 >= REVOKE_TRIES ? [] : [{ ...one, tries: one.tries + 1 }];
      });
      const now = core.env.now();
      const [link, flow] = [doc.link, doc.flow].map((one) => one !== null && !isExpired(one, now));
      if (doc.tokens === null && ended.length === 0 && !link && !flow) tx.delete("upstream_consents", key);
      else tx.put("upstream_consents", key, { ...doc, ended });
    },
  };
}

/** Replaces encrypted texts, each only if it is still the one that was read. */
export function resealUnit(key: string, texts: ReadonlyMap<string, SealedText>): UnitOfWork<void> {
  const now = (sealed: SealedText): SealedText => texts.get(sealed.text) ?? sealed;
  return {
    needs: [["upstream_consents", key]],
    run(tx) {
      const doc = tx.get("upstream_consents", key);
      if (doc === undefined) return;
      tx.put("upstream_consents", key, {
        ...doc,
        flow: doc.flow === null ? null : { ...doc.flow, sealed: now(doc.flow.sealed) },
        tokens: doc.tokens === null ? null : { ...doc.tokens, sealed: now(doc.tokens.sealed) },
        ended: doc.ended.map((one) => ({ ...one, sealed: now(one.sealed) })),
      });
    },
  };
}

/** All encrypted texts of a consent. */
export function sealedTextsOf({ flow, tokens, ended }: UpstreamConsentDoc): SealedText[] {
  return [
    ...(flow === null ? [] : [flow.sealed]),
    ...(tokens === null ? [] : [tokens.sealed]),
    ...ended.map(({ sealed }) => sealed),
  ];
}
