/** Statements on coding agents and their hooks. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondHooks = section("beyond", "Coding agents", {
  "beyond.hooks.clients": [22, "`svc hook <client>` reads and answers the hook interfaces of Claude Code, Cursor, Codex and Gemini CLI"],
  "beyond.hooks.connect": [22, "`svc connect <client> --hooks` installs the hook, the pack, a key and a configuration, and `--undo` takes it back"],
  "beyond.hooks.pack": [22, "the pack's manifests and policy are valid and pass their own tests"],
  "beyond.hooks.intents": [22, "shell commands, file edits, web access and MCP calls become intents of the session's run, with their outcomes"],
  "beyond.hooks.classes": [22, "shell commands are classified by what they do; what cannot be read asks for approval"],
  "beyond.hooks.restores": [22, "edits get a `before` by themselves, and a rollback restores the files byte for byte"],
  "beyond.hooks.not-kept": [22, "what could not be kept is reported as not undone"],
  "beyond.hooks.waits": [22, "a call that waits is refused in the client's own way, with the reason and the id of the request, and passes once approved"],
  "beyond.hooks.fails-closed": [22, "when the service cannot be reached, or anything fails before a call, the hook refuses it"],
  "beyond.hooks.protected": [22, "commands and edits that touch the data folder, keys, credentials, the service's configuration or the hook's settings are refused"],
  "beyond.hooks.deciding": [22, "every deciding `svc` command is refused, also through wrappers as far as they can be recognised"],
  "beyond.hooks.no-override": [22, "an allow of the service is no word at all to the client, whose own prompt stays"],
  "beyond.hooks.observe": [22, "in observe mode nothing is blocked and the session is told what would have been"],
  "beyond.hooks.work-tree": [22, "files that a shell command changed are found by comparing the work tree under its ignore rules, and said to be beyond undo"],
  "beyond.hooks.quick": [22, "the hook adds little to a call: it is one file of its own, and loads nothing of the service"],
  "beyond.hooks.no-outcome": [22, "a call that no event came after is settled when the turn ends"],
  "beyond.hooks.no-workspace-programs": [33, "no hook event and no command of ours starts a program that a workspace's files or variables choose"],
  "beyond.hooks.settings-alone": [33, "the installed hook takes server and key from its settings file alone; no variable changes them or loads code into it"],
  "beyond.hooks.second-client": [33, "connecting a further client uses the address that the kept configuration listens at"],
  "beyond.hooks.understood-or-unknown": [33, "a command passes only if every word, program, option and value of it is known; inline code, variables as programs, changed variables that programs obey and unknown options ask"],
  "beyond.hooks.no-hidden-write": [33, "an output file named to a reading program, by an option or by its place, is never recorded as a read"],
  "beyond.hooks.everyday": [33, "everyday reading, building, testing and local git commands pass without a question"],
  "beyond.hooks.unasked-files": [33, "MCP configurations, git's configuration at every level and `.git` files are refused in every spelling; other files that something runs by itself ask"],
  "beyond.hooks.known-fields": [33, "a tool's input with a field that the client does not have asks, and every field is judged"],
  "beyond.hooks.powershell": [33, "PowerShell and cmd are not read as POSIX: they ask, and what is protected is refused in their own spelling"],
  "beyond.hooks.background": [33, "a background command stays `intended` until the client reports its end, and is `uncertain` when the session ends first"],
  "beyond.errors.common-words": [33, "an error keeps its own words where a value of the call is nothing but common words; every other value is taken out"],
});
