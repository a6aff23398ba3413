/** Followed values: flows with `carries`, given texts, lineage. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Values = section("beyond", "Followed values", {
  "beyond.value.carries": [41, "a flow with `carries` restricts a call only if an argument holds a value of the source's result"],
  "beyond.value.origin": [41, "the reason names the argument, and the tool and step that the value came from"],
  "beyond.value.after": [41, "values of other sources and other runs do not count"],
  "beyond.value.unknown-result": [41, "while a source's result is not known, every value counts as carried"],
  "beyond.value.constants": [41, "constants of the called tool's manifest do not count"],
  "beyond.value.maximum": [41, "past `carries.max` fingerprints, every value counts as carried"],
  "beyond.value.echo": [41, "a value stays foreign when another tool repeats it, and no result vouches for its own call's arguments"],
  "beyond.value.may-give": [41, "texts are given only by keys with `may_give` (403), to an own run (404)"],
  "beyond.value.given-texts": [41, "values of people's texts do not count, whether given at opening or later"],
  "beyond.value.given-results": [41, "values that a result without a source label held first do not count"],
  "beyond.value.given-size": [41, "a run takes at most 1 MB of given texts (413)"],
  "beyond.value.given-shown": [41, "each given text shows on the run and on cards, with its time and length"],
  "beyond.value.lineage": [41, "`GET /v1/runs/{id}/lineage` is an auditor's and lists which results fed which calls, by kind, without values"],
  "beyond.value.lineage-surfaces": [41, "`svc lineage` and the run's page show the same"],
  "beyond.value.purged": [41, "fingerprints are deleted with the run, and never hold a value"],
  "beyond.value.run-only": [41, "`carries` with another `within` than `run` is a load error"],
  "beyond.value.when": [41, "a flow's `when` compares the later call's arguments with the first call's"],
  "beyond.value.when-any": [41, "with several earlier calls the flow applies if it holds for any"],
  "beyond.value.when-missing": [41, "a missing value, or one of another type, counts against the call"],
  "beyond.value.when-result": [41, "`$after.result` is the first call's reported result"],
  "beyond.value.when-masked": [41, "masked paths are compared by `eq` and `ne` only"],
  "beyond.value.when-within": [41, "with a duration, calls of all runs of the agent are compared"],
  "beyond.value.when-checked": [41, "other operators and other paths are load errors that say what to write"],
  "beyond.value.given-library": [41, "the library gives texts at opening and later, embedded and on a server"],
  "beyond.value.given-adapter": [41, "the Claude Agent SDK's adapter gives the user's prompts, if asked to"],
  "beyond.value.given-python": [41, "the Python client gives texts at opening and later"],
  "beyond.value.failed-source": [41, "the error of a failed source is followed like its result"],
  "beyond.value.hosts": [41, "hosts are followed from URLs, addresses and numbers of the network, in every form"],
});
