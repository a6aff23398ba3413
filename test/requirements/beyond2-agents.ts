/** Statements on the everyday use of coding agents. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Agents = section("beyond", "Coding agents, every day", {
  "beyond.hooks.everyday-work": [36, "everyday steps of the usual languages, pinned installs, local git, image builds and reading cloud commands pass without approval"],
  "beyond.hooks.held-out-published": [36, "the reference publishes every everyday step of the held-out set that needs approval"],
  "beyond.hooks.harm-stopped": [36, "at least 98 of 100 held-out harmful steps need approval or are refused"],
  "beyond.hooks.printed-credentials": [36, "subcommands that print credentials, tokens or secrets are refused like credential files"],
  "beyond.hooks.changed-by-run": [36, "a project's own program, or an installation, needs approval once the run changed the program or the lock file"],
  "beyond.hooks.typed-terminal": [36, "a program that obeys keys needs approval where a later call can type into its terminal"],
  "beyond.hooks.discards": [33, "`git restore` and `git checkout` of files need approval where they would discard changes that the session did not make"],
  "beyond.hooks.discards-own": [33, "they pass where they discard nothing, or the session's own edits alone"],
  "beyond.hooks.stash": [36, "a stash needs approval if it changes files that run on their own, found by comparing trees"],
  "beyond.hooks.plain-select": [36, "`psql` passes only with one plain `select` on this machine that calls harmless functions"],
  "beyond.hooks.client-tools": [36, "the tables hold every built-in tool of the supported clients; bookkeeping tools pass"],
  "beyond.hooks.user-level": [36, "`svc connect <client> --hooks` installs the hook in the client's user-level settings and registers the current workspace; `--user` registers all"],
  "beyond.hooks.managed": [36, "`--managed` writes the client's settings of the machine: only as root, and only for a client that has some; an account without hook settings is denied"],
  "beyond.hooks.project": [36, "`--project` writes the project's settings file and warns if git tracks it; connecting without it moves the hook out again"],
  "beyond.hooks.undo-refused": [36, "`svc connect --undo` unregisters the workspace, takes the hook out with the last one, and is refused to agents"],
  "beyond.hooks.stays-hooked": [36, "checking out another branch, stashing, merging, rebasing and cleaning never unhook a session"],
  "beyond.hooks.unregistered": [36, "in a workspace that is not registered the hook records nothing and passes every call"],
  "beyond.hooks.registered-places": [36, "the resolved directory in which a session began counts, with everything below it and every linked work tree of the repository"],
  "beyond.hooks.stays-governed": [36, "a session that began governed stays governed in every directory"],
  "beyond.hooks.agent-from-command": [36, "starting a coding agent from a command needs approval as an unknown command"],
  "beyond.hooks.hold": [36, "a call that waits for a person is held for `--hold` (50 s by default, 0 for none); approved in time it passes in silence, afterwards it is refused with the request's id"],
  "beyond.hooks.hold-limit": [36, "`connect` sets the client's limit at least 15 s above the hold, and the hook shortens the hold to 10 s below the limit that it finds"],
  "beyond.hooks.hold-gone": [36, "a client that is gone leaves the approval unused"],
});
