/**
 * Connects a holder to an upstream: the link, the page behind it, the sign-in at the issuer and its response. A link
 * and a sign-in count once, and only for the person that they were made for.
 */
import { issuerMark, type UpstreamIssuer, type UpstreamSignIn } from "../../auth/upstream-oauth.ts";
import { UnknownClientError, type UpstreamClient } from "../../auth/upstream-tokens.ts";
import type { UrlUpstream } from "../../config/sections/gateway.ts";
import type { UpstreamAuth } from "../../config/sections/upstream-auth.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import {
  beginFlowUnit,
  canConsent,
  connectUnit,
  consentKey,
  isLinkLive,
  offerLinkUnit,
  takeFlowUnit,
} from "../../govern/upstreams/consent.ts";
import type { UpstreamConsentDoc } from "../../govern/upstreams/consent-doc.ts";
import { conflictError, forbiddenError, invalidError, SvcError } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { isKeyOver, withoutTenantFilter } from "./consent-holders.ts";
import {
  consentUpstream,
  endConsent,
  oauthOf,
  openSignIn,
  SERVICE_ACTOR,
  sealSignIn,
  sealTokens,
  storeClient,
  storedClient,
} from "./upstream-access.ts";

/** Path of the page behind a link. */
export const CONNECT_PATH = "/console/upstreams/connect/";
export const CALLBACK_PATH = "/oauth/callback";
/** Path of the document that describes this gateway to issuers. The mark of the issuer follows. */
export const CLIENT_PATH = "/oauth/client/";

const TOKEN = /^([0-9a-f]{32})\.([0-9a-f]{32})$/;
/** A redirect URI with the mark of its issuer. A path, because some issuers drop the query of a redirect URI. */
const MARKED = /\/oauth\/callback\/([0-9a-f]{16})$/;
const STATE = /^([0-9a-f]{32})\.[0-9a-f]{64}$/;
/** Pause after a refused registration, before the next attempt. */
const REGISTER_AGAIN_MS = 60_000;

/** A link for a holder, and when it ends. */
export interface ConnectLink {
  url: string;
  expires_ms: number;
}

/** Offers the holder a link. Null for the service. Throws for an upstream that needs no consent. */
export async function offerConnectLink(
  app: ServiceApp,
  upstream: string,
  principal: CallerPrincipal | null,
  scopes: readonly string[] = [],
): Promise<ConnectLink> {
  const { name } = consentUpstream(app, upstream);
  const { console_url } = app.settings;
  if (console_url === null) throw new SvcError("not_enabled", "connecting needs console_url");
  const whole = withoutTenantFilter(app);
  const key = consentKey(name, principal?.id ?? null);
  const known = await whole.core.store.get("upstream_consents", key);
  if (known !== undefined && isKeyOver(app, known))
    await endConsent(whole, key, { by: SERVICE_ACTOR, why: "its key ended" });
  const unit = offerLinkUnit(app.core, { upstream: name, principal }, scopes);
  const { id, link } = await whole.core.store.transact(unit);
  const token = `${id.slice("ups_".length)}.${link!.nonce}`;
  return { url: `${console_url}${CONNECT_PATH}${token}`, expires_ms: link!.expires_ms };
}

/** What a link is for, as its page shows it. */
export interface ConnectRequest {
  key: string;
  nonce: string;
  doc: UpstreamConsentDoc;
  /** Host of the issuer at which the person signs in. */
  issuer: string;
  resource: string;
  scopes: string[];
}

interface FoundLink {
  key: string;
  nonce: string;
  doc: UpstreamConsentDoc;
  spec: UrlUpstream & { auth: UpstreamAuth };
}

/** Finds the link for this person. Throws for a link that ended, or that another person has. */
async function findLink(app: ServiceApp, person: CallerPrincipal, token: string): Promise<FoundLink> {
  const [, key = "", nonce = ""] = TOKEN.exec(token) ?? [];
  const doc = key === "" ? undefined : await app.core.store.get("upstream_consents", key);
  if (doc === undefined || !isLinkLive(app.core, doc, nonce))
    throw conflictError(
      "link_used",
      "this link was used, or it is older than ten minutes; make the call again",
    );
  if (!canConsent(person, doc))
    throw forbiddenError(
      `this link is for ${doc.name}; sign in as that person, or as an admin for an agent's key`,
    );
  return { key, nonce, doc, spec: consentUpstream(app, doc.upstream) };
}

const union = (...lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];

const scopesOf = ({ doc }: FoundLink, found: UpstreamIssuer): string[] =>
  union(found.scopes, doc.tokens?.scopes ?? [], doc.link?.scopes ?? []);

/** Reads a link for its page. Uses nothing up. */
export async function readConnectLink(
  app: ServiceApp,
  person: CallerPrincipal,
  token: string,
): Promise<ConnectRequest> {
  const link = await findLink(app, person, token);
  const found = await oauthOf(app, link.spec).discover();
  const { key, nonce, doc } = link;
  const issuer = new URL(found.issuer).host;
  return { key, nonce, doc, issuer, resource: found.resource, scopes: scopesOf(link, found) };
}

/** Uses the link up. Returns the issuer's URL for the browser, and the state that binds its response. */
export async function beginConnect(
  app: ServiceApp,
  person: CallerPrincipal,
  token: string,
  session_hash: string,
): Promise<{ url: string; state: string }> {
  const link = await findLink(app, person, token);
  const oauth = oauthOf(app, link.spec);
  const found = await oauth.discover();
  const base = app.settings.console_url!;
  const mark = issuerMark(found.issuer);
  const isConfigured = link.spec.auth.client_id !== null;
  const redirect_uri = `${base}${CALLBACK_PATH}${isConfigured ? "" : `/${mark}`}`;
  const client =
    (await oauth.knownClient(found, `${base}${CLIENT_PATH}${mark}`)) ??
    (await registeredClient(app, link.spec, found, redirect_uri));
  const state = `${link.key}.${Buffer.from(app.core.env.bytes(32)).toString("hex")}`;
  const scopes = scopesOf(link, found);
  const { url, verifier } = await oauth.begin({ found, client, redirect_uri, scopes }, state);
  const sealed = sealSignIn(app, link.key, { found, client, redirect_uri, scopes, verifier });
  const flow = { state_hash: sha256Hex(state), session_hash, sealed };
  await app.core.store.transact(beginFlowUnit(app.core, link, flow));
  return { url, state };
}

const clientName = (issuer: string, redirect_uri: string): string => sha256Hex(`${issuer} ${redirect_uri}`);

const refusals = new WeakMap<ServiceApp["core"]["env"], Map<string, number>>();

/** The client at this issuer, registered once for all. A refusal is not repeated at once. */
async function registeredClient(
  app: ServiceApp,
  spec: UrlUpstream & { auth: UpstreamAuth },
  found: UpstreamIssuer,
  redirect_uri: string,
): Promise<UpstreamClient> {
  const name = clientName(found.issuer, redirect_uri);
  const known = await storedClient(app, name);
  if (known !== null) return known;
  const { env } = app.core;
  const tried = refusals.get(env) ?? new Map<string, number>();
  refusals.set(env, tried);
  if (env.elapsed() - (tried.get(name) ?? -REGISTER_AGAIN_MS) < REGISTER_AGAIN_MS)
    throw new SvcError("unavailable", "the issuer refused to register this gateway; try again in a minute");
  tried.set(name, env.elapsed());
  const client = await oauthOf(app, spec).register(found, redirect_uri);
  await storeClient(app, name, client);
  tried.delete(name);
  return client;
}

/** The issuer's response, as the browser brings it. */
export interface ConnectResponse {
  state: string;
  code: string | undefined;
  error: string | undefined;
  iss: string | undefined;
  /** The mark of the issuer in the redirect URI. */
  as: string | undefined;
}

const notBegun = () =>
  invalidError(
    "this sign-in was not started in this session, was finished already, or took longer than ten minutes",
  );

/** Document key of a state's consent, or null for any other text. */
export const stateKey = (state: string | undefined): string | null => STATE.exec(state ?? "")?.[1] ?? null;

/** Finishes a sign-in: redeems the code once, in the session that began, and stores the tokens. */
export async function finishConnect(
  app: ServiceApp,
  person: CallerPrincipal,
  session_hash: string,
  { state, code, error, iss, as }: ConnectResponse,
): Promise<UpstreamConsentDoc> {
  const key = stateKey(state);
  if (key === null) throw notBegun();
  const { store, listeners } = app.core;
  const doc = await store.transact(takeFlowUnit(app.core, key, sha256Hex(state)));
  if (doc === null || doc.flow!.session_hash !== session_hash) throw notBegun();
  if (!canConsent(person, doc)) throw notBegun();
  const sign_in = openSignIn(app, key, doc.flow!.sealed);
  const spec = consentUpstream(app, doc.upstream);
  assertIssuer(sign_in, { iss, as });
  if (code === undefined)
    throw forbiddenError(
      error === "access_denied"
        ? "access was not granted at the issuer"
        : "the issuer did not finish the sign-in",
    );
  const tokens = await redeemed(app, spec, sign_in, { code, iss });
  const { issuer, scopes, expires_ms } = tokens;
  const sealed = sealTokens(app, key, tokens);
  const connected_by = person.name;
  const unit = connectUnit(app.core, key, { sealed, issuer, scopes, expires_ms, connected_by });
  const connected = await store.transact(unit);
  announceRecords(listeners, connected.records);
  return connected.doc;
}

/** Refuses a response from an issuer other than the one that was asked. */
function assertIssuer(
  { found, redirect_uri }: UpstreamSignIn,
  given: Pick<ConnectResponse, "iss" | "as">,
): void {
  const expected = MARKED.exec(redirect_uri)?.[1];
  if (given.as !== expected) throw invalidError("this response is from another issuer");
  const isNamed = found.metadata["authorization_response_iss_parameter_supported"] === true;
  if (given.iss === undefined ? isNamed : given.iss !== found.issuer)
    throw invalidError("this response is from another issuer");
}

async function redeemed(
  app: ServiceApp,
  spec: UrlUpstream & { auth: UpstreamAuth },
  sign_in: UpstreamSignIn,
  { code, iss }: { code: string; iss: string | undefined },
) {
  try {
    return await oauthOf(app, spec).redeem(sign_in, { code, iss, now: app.core.env.now() });
  } catch (error) {
    if (error instanceof UnknownClientError)
      await storeClient(app, clientName(sign_in.found.issuer, sign_in.redirect_uri), null);
    throw error;
  }
}
