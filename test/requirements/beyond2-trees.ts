/** Statements on child runs. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Trees = section("beyond", "Child runs", {
  "beyond.tree.parent": [36, "`POST /v1/runs` takes `parent`, an own run of the caller; any other run is a 404"],
  "beyond.tree.bounds": [36, "a tree has at most 5 levels, and a run at most 100 children (400)"],
  "beyond.tree.inherits": [36, "a child has its parent's actor, tenant, environment and mode"],
  "beyond.tree.permissions": [36, "permissions beyond the parent's are a 403"],
  "beyond.tree.seal": [36, "the scope seal covers the parent; without a parent it is as before"],
  "beyond.tree.limits": [36, "limits, budgets and open requests that count per run count over the whole tree"],
  "beyond.tree.flows": [36, "a flow within a run counts over the whole tree"],
  "beyond.tree.values": [36, "followed values and given texts belong to the whole tree"],
  "beyond.tree.simulated": [36, "simulations and plans count a child run's calls in its tree"],
  "beyond.tree.shown": [36, "a run lists its parent and its children"],
  "beyond.tree.reconciled": [36, "a transcript is compared with the calls of the whole tree"],
  "beyond.tree.kept": [36, "retention keeps a run as long as a child run of it"],
  "beyond.tree.rollback": [36, "a rollback with children undoes every run of the tree, and its plan shows them all"],
  "beyond.tree.rollback-order": [36, "the calls of all runs are undone newest first"],
  "beyond.tree.rollback-part": [36, "the rollback covers the runs below the named run, and only if it says so"],
  "beyond.tree.rollback-conflict": [36, "what somebody else wrote since is left alone in every run of the tree"],
  "beyond.tree.rollback-roles": [36, "a rollback of a tree needs what a rollback of its run needs"],
  "beyond.hooks.sub-agents": [36, "hooks open the sub-agents of a session as child runs of the session's run"],
  "beyond.tree.surfaces": [36, "HTTP, command line, console and library roll back a tree"],
});
