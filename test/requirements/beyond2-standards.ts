/** Standards: OAuth for MCP on both sides, tokens with actors, AuthZEN, CAEP. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Standards = section("beyond", "Standards at the doors", {
  "beyond.oauth.sdk-client": [43, "the MCP SDK's own OAuth client, given the endpoint's URL alone, signs in at the organisation's issuer and works"],
  "beyond.oauth.clients": [43, "clients by other authors, given the endpoint's URL alone, sign a person in and call a tool"],
  "beyond.oauth.metadata": [43, "the metadata of both endpoints is open and names the resource and the issuer"],
  "beyond.oauth.scopes": [43, "the metadata names `oidc.scopes`, which clients ask the issuer for"],
  "beyond.oauth.gateway-url": [43, "the resource is `gateway_url` with the endpoint's path"],
  "beyond.oauth.challenge-401": [43, "a 401 of the gateway's endpoints holds `resource_metadata`"],
  "beyond.oauth.challenge-403": [43, "a 403 for a missing role is `insufficient_scope`"],
  "beyond.oauth.conformance": [43, "the official conformance suite passes under a token of the issuer"],
  "beyond.oauth.without-oidc": [43, "without OIDC the metadata is a 404 and a 401 says `Bearer` alone"],
  "beyond.oauth.audience": [43, "a token is accepted for `oidc.audience` or for the endpoint that it was issued for, and nowhere else"],

  "beyond.authzen.preview": [43, "an evaluation previews the decision and leaves nothing"],
  "beyond.authzen.decision": [43, "`decision` is true for `allow` and `would_block`; `context.reasons` says why"],
  "beyond.authzen.subject": [43, "`subject.id` is the caller (403); an auditor may preview for anybody"],
  "beyond.authzen.commit": [43, "with `context.commit` it is the intent; without `run_id` it is a 400"],
  "beyond.authzen.evaluations": [43, "at most 100 evaluations in one request, with defaults and the standard's semantics"],
  "beyond.authzen.interop": [43, "the working group's to-do scenario is answered as it expects"],
  "beyond.authzen.metadata": [43, "`/.well-known/authzen-configuration` is open and names the endpoints"],
  "beyond.authzen.task": [43, "a decision that waits for approval answers with a task to poll; after the approval the same evaluation is permitted"],
  "beyond.authzen.task-own": [43, "a task of another agent is a 404, and a denial counts only for the call that was denied"],

  "beyond.caep.delivery": [43, "`POST /caep/events` answers 202, and 400 with the error body of RFC 8935"],
  "beyond.caep.off": [43, "it is a 404 unless issuer, audience and `jwks_url` are set; a part of them is a load error"],
  "beyond.caep.halt": [43, "`session-revoked` and `credential-change` of an `iss_sub` subject halt that actor by `caep:<issuer>`; other events do nothing"],
  "beyond.caep.exact": [43, "a subject with characters of a glob halts exactly that actor"],
  "beyond.caep.once": [43, "a `jti` counts once, also after a person lifted the halt"],
  "beyond.caep.doctor": [43, "`svc doctor` fetches the keys of the transmitter"],
  "beyond.caep.forged": [43, "forged, foreign and unsigned events are refused"],

  "beyond.acting.agent-only": [43, "a token with `act` has the role agent only, whatever its groups map to"],
  "beyond.acting.run": [43, "the actor of its runs is `sub`, and `acting` lists every `act.sub`, outermost first"],
  "beyond.acting.match": [43, "`match.acting` matches any name in the list, and never a run without one"],
  "beyond.acting.prover": [43, "the prover, the comparison, tests and simulations of policies follow `match.acting`"],
  "beyond.acting.shown": [43, "cards, runs and reports show who acts"],
  "beyond.acting.four-eyes": [43, "with four eyes neither `sub` nor anybody in `acting` may decide"],
  "beyond.acting.own-runs": [43, "a token with other actors, or without any, does not reach the run"],
  "beyond.acting.absent": [43, "a run without actors is stored, sealed and shown as before"],
});
