/** Upstreams with their own sign-in: each person's consent, and exchanged tokens. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Upstreams = section("beyond", "Sign-in at upstreams", {
  "beyond.upstream-oauth.discovery": [43, "the issuer is discovered (RFC 9728, 8414), the gateway registers itself once, and signs in with PKCE, state and the resource"],
  "beyond.upstream-oauth.client-document": [43, "an issuer that accepts a metadata document gets its URL as the client id, and no registration"],
  "beyond.upstream-oauth.configured-client": [43, "a configured client is used at its configured issuer only"],
  "beyond.upstream-oauth.link": [43, "a call without consent gets a link, nothing is sent or recorded, and the call runs after the consent"],
  "beyond.upstream-oauth.waited": [43, "clients that wait for approvals wait for consent by the same mechanisms"],
  "beyond.upstream-oauth.link-once": [43, "a link works once, for ten minutes"],
  "beyond.upstream-oauth.link-person": [43, "a link is for that principal signed in at the console; for an agent's key, for an admin of its tenant"],
  "beyond.upstream-oauth.page": [43, "the page names the upstream, the scopes and the principal"],
  "beyond.upstream-oauth.callback": [43, "the callback counts once, in the session that began; anything else is a 400"],
  "beyond.upstream-oauth.mix-up": [43, "a response of another issuer is refused before its code is redeemed"],
  "beyond.upstream-oauth.own-token": [43, "a principal's token is used for no other principal, and no caller's token is passed on"],
  "beyond.upstream-oauth.service": [43, "with `per: service` an admin of the entire service consents once for everybody"],
  "beyond.upstream-oauth.refresh": [43, "tokens are refreshed before they expire and after a refusal, once across concurrent calls"],
  "beyond.upstream-oauth.step-up": [43, "a refusal for missing scopes leads to a link that asks for them too"],
  "beyond.upstream-oauth.key-ended": [43, "deleting or disabling the key ends the consent, deletes its tokens and revokes them at the issuer"],
  "beyond.upstream-oauth.list": [43, "the command, the API and the console list who is connected, and revoke"],
  "beyond.upstream-oauth.at-rest": [43, "tokens are encrypted at rest and bound to their place; without the key nobody can read them"],
  "beyond.upstream-oauth.rotate": [43, "after a change of the key everything is encrypted again, and the old key is not needed any more"],
  "beyond.upstream-oauth.key-required": [43, "an upstream with OAuth and no usable `token_key` is a load error"],
  "beyond.upstream-oauth.no-leak": [43, "no token, code or secret is in a record, log, answer, error or stored document"],
  "beyond.upstream-oauth.guarded": [43, "every URL of a metadata document passes the egress guard; no redirect is followed; answers are bounded"],
  "beyond.upstream-oauth.registration": [43, "the gateway registers once per issuer, whatever the number of links, and does not repeat a refused registration at once"],
  "beyond.upstream-oauth.tenants": [43, "a tenant sees, connects and revokes only its own connections"],
  "beyond.upstream-oauth.stores": [43, "connections work alike on every store, and survive a restart"],
  "beyond.upstream-oauth.conformance": [43, "the authorization scenarios of the official conformance suite pass in the role of a client"],
  "beyond.upstream-oauth.off": [43, "an upstream without `auth` writes and offers what it did before"],
  "beyond.upstream-exchange.caller": [43, "`auth: {type: exchange}` exchanges the caller's token (RFC 8693) at the configured issuer, for each caller apart"],
  "beyond.upstream-exchange.key": [43, "a caller without a token of the issuer gets an error that says so, and nothing is sent"],
});
