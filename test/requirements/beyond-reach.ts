/** Statements on the command line against a server. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondReach = section("beyond", "The command line against a server", {
  "beyond.cli.server-redirect": [33, "with `--server` and in the library a redirect is an error that names where it leads; it is not followed"],
  "beyond.cli.server-strange": [33, "an answer that has not the operation's form is an error that says to check the address, and nothing of it is printed or acted upon"],
  "beyond.cli.server-bounded": [33, "an answer is read to a bound: 64 MB, and 1 GB of a document"],
  "beyond.cli.server": [22, "`--server` and `--key-file`, `SVC_SERVER` and `SVC_TOKEN` make a command that is an operation work against a server"],
  "beyond.cli.needs-data": [22, "what needs the data folder says so"],
  "beyond.cli.show": [22, "`svc show <run>` tells what a run did, in order"],
  "beyond.cli.show-values": [22, "captured arguments are shown on a local data folder only"],
  "beyond.cli.login": [22, "`svc login` keeps a key in a file that only its owner can read, and refuses one that others can"],
  "beyond.cli.rollback-upstreams": [22, "`svc rollback` without a compensator undoes through the configured upstreams"],
  "beyond.cli.looks-upstreams": [22, "`svc plan` and `svc contain` on a data folder look and undo through the configured upstreams, as `svc rollback` does"],
  "beyond.cli.rollback-server": [22, "`svc rollback` against a server starts its job, waits for the report and says the same"],
  "beyond.cli.next-command": [22, "a rollback that leaves something names the next command for it"],
});
