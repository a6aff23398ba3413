/** Checks of whether a successful call did what it said. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Effects = section("beyond", "Effect checks", {
  "beyond.effect.validated": [42, "effect_check needs a tool of effect read, an expectation, and paths that exist; a load names each problem"],
  "beyond.effect.http": [42, "over HTTP the decision says effect_check and the agent reports observed"],
  "beyond.effect.gateway": [42, "the gateway reads after a success whether the call did what it said"],
  "beyond.effect.proxy": [42, "the proxy reads after a success whether the request did what it said, and names the finding in a header"],
  "beyond.effect.library": [42, "the library reads after a success, and throws UncertainError for a missing effect"],
  "beyond.effect.python": [42, "the Python SDK reads after a success, and raises EffectMissing for a missing effect"],
  "beyond.effect.missing": [42, "a missing effect writes effect_missing, then uncertain"],
  "beyond.effect.alert": [42, "a missing effect raises the alert effect_missing"],
  "beyond.effect.not-checked": [42, "a check that cannot be run leaves the step succeeded with `effect: not checked`"],
  "beyond.effect.optional": [42, "an expected argument that the call does not have is not compared; without any, the effect is not checked"],
  "beyond.effect.scope": [42, "a check whose read is out of the run's scope is not asked for and counts as not checked"],
  "beyond.effect.retries": [42, "an effect that shows later is found within the retries"],
  "beyond.effect.resolve": [42, "a call whose effect was missing and is resolved as succeeded can be undone"],
  "beyond.effect.shown": [42, "svc show, the console, reports and the run's answer show what the check found"],
  "beyond.effect.off": [42, "without effect_check a success writes the records it wrote before"],
});
