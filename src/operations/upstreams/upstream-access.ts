/**
 * Tokens of upstreams as this process uses them: finds, refreshes, ends and revokes them. A token is only ever used for
 * the principal that consented. Stored tokens are encrypted, and each refresh happens once across all processes.
 */
import { UpstreamOAuth, type UpstreamSignIn } from "../../auth/upstream-oauth.ts";
import { ConsentEndedError, type UpstreamClient, type UpstreamTokenSet } from "../../auth/upstream-tokens.ts";
import { needsConsent, type UpstreamSpec, type UrlUpstream } from "../../config/sections/gateway.ts";
import type { UpstreamAuth } from "../../config/sections/upstream-auth.ts";
import { isExpired } from "../../govern/expiry.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import {
  claimRefreshUnit,
  consentKey,
  consentKeyOf,
  endConsentUnit,
  resealUnit,
  sealedTextsOf,
  settleEndedUnit,
  storeRefreshUnit,
  wantScopesUnit,
} from "../../govern/upstreams/consent.ts";
import type { SealedText, UpstreamConsentDoc } from "../../govern/upstreams/consent-doc.ts";
import { messageOf, notFoundError, SvcError } from "../../kernel/errors.ts";
import { asJson, fromJson } from "../../kernel/json/json.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { followHolder, holderLives, isKeyOver } from "./consent-holders.ts";

/** Tokens are refreshed this long before they expire. */
const EARLY_MS = 60_000;
const WAIT_MS = 20_000;
const LOOK_MS = 100;
const WATCH_MS = 500;
const CLIENTS = "upstream_clients";
/** Actor of automatic changes. */
export const SERVICE_ACTOR = "svc";

/** An upstream with its own sign-in. */
export type AuthorizedUpstream = UrlUpstream & { auth: UpstreamAuth };

/** The configured upstreams with their own sign-in. */
export function authorizedUpstreams({ settings }: Pick<ServiceApp, "settings">): AuthorizedUpstream[] {
  return settings.upstreams.filter((spec): spec is AuthorizedUpstream => "url" in spec && spec.auth !== null);
}

/** The upstream with this name, which needs consent. */
export function consentUpstream(app: ServiceApp, name: string): AuthorizedUpstream {
  const spec = authorizedUpstreams(app).find((one) => one.name === name && needsConsent(one));
  if (spec !== undefined) return spec;
  throw notFoundError(`no upstream with \`auth: {type: oauth}\` is called ${JSON.stringify(name)}`);
}

export function oauthOf(app: ServiceApp, spec: AuthorizedUpstream): UpstreamOAuth {
  return new UpstreamOAuth(spec, app.egress, app.strictEgress);
}

/** Encrypts and decrypts stored tokens and sign-ins. */
function vaultOf({ vault }: ServiceApp) {
  if (vault === null) throw new SvcError("not_enabled", "no token_key is set on this server");
  return vault;
}

const tokensPlace = (key: string): string => `tokens ${key}`;
const flowPlace = (key: string): string => `flow ${key}`;
const clientPlace = (name: string): string => `client ${name}`;

export const sealTokens = (app: ServiceApp, key: string, tokens: UpstreamTokenSet): SealedText =>
  vaultOf(app).seal(JSON.stringify(tokens), tokensPlace(key));
const openTokens = (app: ServiceApp, key: string, sealed: SealedText): UpstreamTokenSet =>
  JSON.parse(vaultOf(app).open(sealed, tokensPlace(key))) as UpstreamTokenSet;
export const sealSignIn = (app: ServiceApp, key: string, flow: UpstreamSignIn): SealedText =>
  vaultOf(app).seal(JSON.stringify(flow), flowPlace(key));
export const openSignIn = (app: ServiceApp, key: string, sealed: SealedText): UpstreamSignIn =>
  JSON.parse(vaultOf(app).open(sealed, flowPlace(key))) as UpstreamSignIn;

type StoredClients = Record<string, { sealed: SealedText; expires_ms: number | null }>;

/** The client that was registered under this name, or null. */
export async function storedClient(app: ServiceApp, name: string): Promise<UpstreamClient | null> {
  const all = fromJson<StoredClients>((await app.core.store.get("meta", CLIENTS)) ?? {});
  const found = Object.hasOwn(all, name) ? all[name]! : null;
  if (found === null || isExpired(found, app.core.env.now())) return null;
  return JSON.parse(vaultOf(app).open(found.sealed, clientPlace(name))) as UpstreamClient;
}

/** Stores a registered client, or forgets it. */
export function storeClient(app: ServiceApp, name: string, client: UpstreamClient | null): Promise<void> {
  const until = (client as { client_secret_expires_at?: number } | null)?.client_secret_expires_at ?? 0;
  const sealed = client === null ? null : vaultOf(app).seal(JSON.stringify(client), clientPlace(name));
  return app.core.store.transact({
    needs: [["meta", CLIENTS]],
    run(tx) {
      const { [name]: _, ...rest } = fromJson<StoredClients>(tx.get("meta", CLIENTS) ?? {});
      const stored = { sealed: sealed!, expires_ms: until === 0 ? null : until * 1_000 };
      tx.put("meta", CLIENTS, asJson(sealed === null ? rest : { ...rest, [name]: stored }));
    },
  });
}

/** Names the connection itself instead of a tool, where all tools need further scopes. */
export const EVERY_TOOL = "";

/** What a holder's calls lack at an upstream, or null. */
export interface MissingConsent {
  scopes: readonly string[];
}

/** The consent that a call of this tool lacks. Null if it lacks none. */
export async function missingConsent(
  app: ServiceApp,
  spec: UpstreamSpec,
  principal: string | null,
  tool: string | null,
): Promise<MissingConsent | null> {
  return lackedConsent(
    app,
    await app.core.store.get("upstream_consents", consentKey(spec.name, principal)),
    tool,
  );
}

/** As `missingConsent`, for the caller, whose consent gets the caller's present tenant. */
export async function missingOwnConsent(
  app: ServiceApp,
  spec: UpstreamSpec,
  principal: CallerPrincipal,
  tool: string | null,
): Promise<MissingConsent | null> {
  return lackedConsent(app, await followHolder(app, spec.name, principal), tool);
}

function lackedConsent(
  app: ServiceApp,
  doc: UpstreamConsentDoc | undefined,
  tool: string | null,
): MissingConsent | null {
  if (doc === undefined || doc.tokens === null || !holderLives(app, doc)) return { scopes: [] };
  const wanted = [EVERY_TOOL, tool ?? EVERY_TOOL].flatMap((name) =>
    Object.hasOwn(doc.wanted, name) ? doc.wanted[name]! : [],
  );
  return wanted.length === 0 ? null : { scopes: wanted };
}

/** The current access token of the holder, refreshed if necessary. `refused` is one that the upstream refused. */
export async function accessToken(
  app: ServiceApp,
  spec: AuthorizedUpstream,
  principal: string | null,
  refused?: string,
): Promise<string | null> {
  const key = consentKey(spec.name, principal);
  const doc = await app.core.store.get("upstream_consents", key);
  if (doc === undefined || doc.tokens === null || !holderLives(app, doc)) return null;
  const held = openTokens(app, key, doc.tokens.sealed);
  if (held.access_token !== refused && !isDue(app, held)) return held.access_token;
  return (await refreshed(app, spec, key, doc.tokens.sealed))?.access_token ?? null;
}

function isDue({ core }: ServiceApp, { expires_ms, refresh_token }: UpstreamTokenSet): boolean {
  if (expires_ms === null) return false;
  // Without a refresh token there is nothing to renew early.
  return isExpired({ expires_ms: expires_ms - (refresh_token === null ? 0 : EARLY_MS) }, core.env.now());
}

async function refreshed(
  app: ServiceApp,
  spec: AuthorizedUpstream,
  key: string,
  sealed: SealedText,
): Promise<UpstreamTokenSet | null> {
  const { core } = app;
  const by = core.env.uuid();
  const until = core.env.elapsed() + WAIT_MS;
  while (core.env.elapsed() < until) {
    const claim = await core.store.transact(claimRefreshUnit(core, { key, by, sealed }));
    if (claim === null) return null;
    const now = claim.doc.tokens!.sealed;
    if (now.text !== sealed.text) return openTokens(app, key, now);
    if (claim.mine) return refreshOnce(app, spec, key, { sealed, by });
    await core.env.sleep(LOOK_MS);
  }
  throw new SvcError("unavailable", "another process does not finish refreshing the tokens; try again");
}

async function refreshOnce(
  app: ServiceApp,
  spec: AuthorizedUpstream,
  key: string,
  { sealed, by }: { sealed: SealedText; by: string },
): Promise<UpstreamTokenSet | null> {
  const { store, env } = app.core;
  try {
    const tokens = await oauthOf(app, spec).refresh(openTokens(app, key, sealed), env.now());
    const { scopes, expires_ms } = tokens;
    const stored = { sealed: sealTokens(app, key, tokens), scopes, expires_ms };
    return (await store.transact(storeRefreshUnit(key, by, stored))) ? tokens : null;
  } catch (error) {
    if (error instanceof ConsentEndedError) {
      await endConsent(app, key, { by: SERVICE_ACTOR, why: "the issuer ended it" });
      return null;
    }
    await store.transact(storeRefreshUnit(key, by, null));
    throw error;
  }
}

/** Waits until the holder has consented, in any process. Returns whether that happened. */
export async function awaitConsent(
  app: ServiceApp,
  spec: UpstreamSpec,
  { principal, tool }: { principal: string; tool: string | null },
  { wait_ms, signal }: { wait_ms: number; signal: AbortSignal },
): Promise<boolean> {
  const { env } = app.core;
  const until = env.elapsed() + wait_ms;
  for (;;) {
    if ((await missingConsent(app, spec, principal, tool)) === null) return true;
    const left = until - env.elapsed();
    if (left <= 0 || signal.aborted) return false;
    await env.sleep(Math.min(left, WATCH_MS), signal).catch(() => {});
  }
}

/** Notes that a tool needs further scopes. */
export function noteWantedScopes(
  app: ServiceApp,
  spec: UpstreamSpec,
  principal: string | null,
  wanted: { tool: string; scopes: readonly string[] },
): Promise<void> {
  const key = consentKey(spec.name, principal);
  return app.core.store.transact(wantScopesUnit(key, wanted.tool, wanted.scopes));
}

/** Ends a consent at once, and then revokes its tokens at the issuer. */
export async function endConsent(
  app: ServiceApp,
  key: string,
  how: { by: string; why: string; may?: (doc: UpstreamConsentDoc) => boolean },
): Promise<UpstreamConsentDoc> {
  const { doc, records } = await app.core.store.transact(endConsentUnit(app.core, key, how));
  announceRecords(app.core.listeners, records);
  await revokeEnded(app, key, doc);
  return doc;
}

/** Revokes ended tokens at their issuer. The sweep repeats failed attempts. */
async function revokeEnded(app: ServiceApp, key: string, doc: UpstreamConsentDoc): Promise<void> {
  const tried = new Map<string, boolean>();
  for (const { sealed } of doc.ended) {
    try {
      const tokens = openTokens(app, key, sealed);
      await oauthOf(app, specOf(app, doc, tokens)).revoke(tokens);
      tried.set(sealed.text, true);
    } catch (error) {
      app.log.warn("tokens of an upstream were not revoked at their issuer", {
        upstream: doc.upstream,
        problem: messageOf(error),
      });
      tried.set(sealed.text, false);
    }
  }
  await app.core.store.transact(settleEndedUnit(app.core, key, tried));
}

/** The upstream of a consent. Its tokens are revoked even if it was removed from the configuration. */
function specOf(
  app: ServiceApp,
  { upstream }: UpstreamConsentDoc,
  tokens: UpstreamTokenSet,
): AuthorizedUpstream {
  const known = authorizedUpstreams(app).find(({ name }) => name === upstream);
  return known ?? ({ name: upstream, url: tokens.resource, headers: {}, auth: GONE } as AuthorizedUpstream);
}

const GONE: UpstreamAuth = {
  type: "oauth",
  per: "principal",
  scopes: null,
  issuer: null,
  client_id: null,
  client_secret: null,
};

/**
 * Ends the consents of keys that are deleted, disabled or expired, and revokes ended tokens. Consents of people follow
 * the tenant that the settings give their groups.
 */
export async function sweepConsents(app: ServiceApp, by = SERVICE_ACTOR): Promise<void> {
  if (app.vault === null) return;
  for await (const { key, doc } of allRows(app.core.store, "upstream_consents")) {
    if (isKeyOver(app, doc)) await endConsent(app, key, { by, why: "its key ended" });
    else if (doc.tokens === null) await revokeEnded(app, key, doc);
    const now = doc.holder === null ? null : app.today(doc.holder);
    if (now !== null) await followHolder(app, doc.upstream, now);
  }
}

/** Encrypts everything with the current key. Returns how many texts changed. */
export async function resealConsents(app: ServiceApp): Promise<number> {
  const { store } = app.core;
  const vault = vaultOf(app);
  let resealed = 0;
  const again = (sealed: SealedText, places: readonly string[]): SealedText => {
    for (const [i, place] of places.entries()) {
      try {
        return vault.seal(vault.open(sealed, place), place);
      } catch (error) {
        if (i === places.length - 1) throw error;
      }
    }
    return sealed;
  };
  for await (const { key, doc } of allRows(store, "upstream_consents")) {
    const old = sealedTextsOf(doc).filter((sealed) => !vault.isCurrent(sealed));
    const texts = new Map(old.map((one) => [one.text, again(one, [tokensPlace(key), flowPlace(key)])]));
    if (texts.size > 0) await store.transact(resealUnit(key, texts));
    resealed += texts.size;
  }
  const clients = fromJson<StoredClients>((await store.get("meta", CLIENTS)) ?? {});
  for (const [name, { sealed }] of Object.entries(clients)) {
    if (vault.isCurrent(sealed)) continue;
    const client = JSON.parse(vault.open(sealed, clientPlace(name))) as UpstreamClient;
    await storeClient(app, name, client);
    resealed++;
  }
  return resealed;
}

/** Document key of a connection's id. Throws for text that is none. */
export function connectionKey(id: string): string {
  const key = consentKeyOf(id);
  if (key === undefined) throw notFoundError("nobody is connected under this id", "unknown_connection");
  return key;
}

/** A token of the upstream for the caller's token. It is not stored. */
export async function exchangedToken(
  app: ServiceApp,
  spec: AuthorizedUpstream,
  subject_token: string,
): Promise<{ token: string; expires_ms: number | null }> {
  const issuer = spec.auth.issuer ?? app.settings.oidc.issuer;
  if (issuer === null) throw new SvcError("not_enabled", "exchanging tokens needs oidc.issuer");
  const { access_token, expires_ms } = await oauthOf(app, spec).exchange(
    subject_token,
    issuer,
    app.core.env.now(),
  );
  return { token: access_token, expires_ms };
}
