/** Standards at the doors: OAuth for MCP on both sides, tokens with actors, AuthZEN, CAEP. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Standards = section("beyond", "Standards at the doors", {
  "beyond.oauth.sdk-client": [43, "the MCP SDK's own OAuth client, given the endpoint's URL alone, signs in at the organisation's issuer and works"],
  "beyond.oauth.metadata": [43, "the metadata of both endpoints is open and names the resource and the issuer"],
  "beyond.oauth.gateway-url": [43, "the resource is `gateway_url` with the endpoint's path"],
  "beyond.oauth.challenge-401": [43, "a 401 of the gateway's endpoints holds `resource_metadata`"],
  "beyond.oauth.challenge-403": [43, "a 403 for a missing role is `insufficient_scope`"],
  "beyond.oauth.without-oidc": [43, "without OIDC the metadata is a 404 and a 401 says `Bearer` alone"],
  "beyond.oauth.audience": [43, "a token is accepted for `oidc.audience` or for the endpoint that it was issued for, and nowhere else"],

  "beyond.acting.agent-only": [43, "a token with `act` has the role agent only, whatever its groups map to"],
  "beyond.acting.run": [43, "the actor of its runs is `sub`, and `acting` lists every `act.sub`, outermost first"],
  "beyond.acting.match": [43, "`match.acting` matches any name in the list, and never a run without one"],
  "beyond.acting.prover": [43, "the prover, the comparison, tests and simulations of policies follow `match.acting`"],
  "beyond.acting.shown": [43, "cards, runs and reports show who acts"],
  "beyond.acting.four-eyes": [43, "with four eyes neither `sub` nor anybody in `acting` may decide"],
  "beyond.acting.own-runs": [43, "a token with other actors, or without any, does not reach the run"],
  "beyond.acting.absent": [43, "a run without actors is stored, sealed and shown as before"],
});
