/** Undo that is proven before it is needed. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondDrills = section("beyond", "Drills", {
  "beyond.drill.manifest": [17, "a manifest may hold `drill: {args, expect}`; without an undo or a read-back it is a problem at validation"],
  "beyond.drill.pipeline": [17, "a drill makes the call in a run of its own through the whole pipeline, undoes it and reads back"],
  "beyond.packs.drilled": [17, "the packed undos of the filesystem and memory servers pass a drill with the real server"],
  "beyond.drill.expect": [17, "the result is checked in part against `expect`"],
  "beyond.drill.effect": [17, "a read-back that matches before the undo fails the drill"],
  "beyond.drill.liars": [17, "a compensator that answers success and does nothing, half of it or all of it twice fails its drill"],
  "beyond.drill.environments": [17, "drills run only in an environment under `drills.environments`, and nowhere by default: 403"],
  "beyond.drill.no-upstreams": [17, "on a server without upstreams drills are a 404, said before anything about environments"],
  "beyond.drill.routes": [17, "`POST /v1/drills` is an operator's and answers 202 `{job}`; `GET /v1/drills` is an auditor's"],
  "beyond.drill.record": [17, "the result, the manifest's hash and the time are kept and recorded as `drill_passed` or `drill_failed`"],
  "beyond.drill.words": [17, "tools, plans and impact say `proven <when>`, `never proven` or `failing`"],
  "beyond.drill.policy": [17, "policy `undo: {max_age, unproven}` makes a missing, old or failing proof warn, need approval or deny; drills themselves pass it"],
  "beyond.drill.library": [17, "the library drills with callbacks"],
  "beyond.drill.cli": [17, "`svc drill [tool..] [--due] [--upstream <name>]` exits 1 where one failed"],
  "beyond.drill.console": [17, "a console page lists each tool's proof and starts drills for an operator; it is linked where drills are configured"],
});
