/** Statements on undoing shell commands: the record of the workspace around each command. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Record = section("beyond", "Shell commands can be undone", {
  "beyond.record.limits": [36, "`snapshot` in the hook's settings sets `max_file`, `max_total`, `exclude` and `required`"],
  "beyond.record.git": [36, "of `.git` the record keeps `HEAD`, refs, `packed-refs`, the index, `config` and the stash's log; a refreshed index is no change"],
  "beyond.record.contents-local": [36, "contents stay in the service's directory (0600 in 0700), compressed, once per keyed hash; the server gets paths, sizes, modes and hashes"],
  "beyond.record.retention": [36, "contents of deleted runs are removed hourly and at start; if the service cannot be asked, nothing is removed"],
  "beyond.record.legal-hold": [36, "a legal hold on the run keeps its recorded contents"],
  "beyond.record.retention-plan": [36, "`svc retention plan` counts the recorded bytes of the machine"],
  "beyond.record.difference": [36, "the difference of a command is its step's `before` and `after`: files, renames, modes, links and empty directories"],
  "beyond.record.exit-code": [36, "a command that failed is undone like one that succeeded"],
  "beyond.record.not-recorded": [36, "what `exclude` left out is residue; what a limit, a permission or a race left out puts the step under `failed` with `not recorded: <n> files`"],
  "beyond.record.confirm": [36, "the pack's shell tools are `compensable`; cards with `card.confirm` take the second gesture"],
  "beyond.record.together": [36, "`svc rollback` undoes edits and commands together, newest first"],
  "beyond.record.names-files": [36, "the report names every file that was not restored; all others are restored"],
  "beyond.record.skip": [36, "`--skip <path>` leaves a file or directory out, and the report says so"],
  "beyond.record.links": [36, "a restore never follows a link; a path that became one is a conflict"],
  "beyond.record.other-machine": [36, "without the contents the step is under `failed` with `the recorded contents are on <host name>`"],
  "beyond.record.overlap": [36, "what changed while another call ran, or where the class does not write, is not undone: `conflict: changed while another was writing`"],
  "beyond.record.told": [36, "a record that fails or is not ready in time lets the command run, and the session is told"],
  "beyond.record.required": [36, "with `required` such a command is denied"],
  "beyond.record.edits": [36, "edits are recorded like commands: links are never followed, every file is named, and all others are restored"],
  "beyond.record.own-changes": [36, "a file that only this run changed, by edits and commands in any order, goes back to before the run's first change"],
  "beyond.record.histories": [36, "after random histories with another writer the workspace equals its first state, or differs only where the other writer wrote"],
});
