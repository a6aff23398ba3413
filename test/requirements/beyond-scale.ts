/** Statements on many machines and many callers. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondQuotas = section("beyond", "Fairness", {
  "beyond.quotas.requests": [23, "past `requests_per_second` and `burst` a request is a 429 with Retry-After and the error body, and nothing is recorded"],
  "beyond.quotas.open-approvals": [23, "a call that would open more requests than `open_approvals` is a 429, records nothing, and is asked again once one has ended"],
  "beyond.quotas.waiting": [23, "past `waiting` a long poll is a 429"],
  "beyond.quotas.sessions": [23, "past `sessions` a further MCP session is a 429"],
  "beyond.quotas.match": [23, "`match` takes globs of tenant and actor, counted apart for each tenant and actor that they fit"],
  "beyond.quotas.console": [23, "console pages count, and say 429 with Retry-After"],
  "beyond.quotas.config": [23, "a quota that limits nothing, or has a bad glob, is refused at its place"],
  "beyond.quotas.share": [23, "without quotas a flooding tenant takes no more than its share of a batch"],
});

// biome-ignore format: one statement a line
export const beyondReplica = section("beyond", "Reads elsewhere", {
  "beyond.replica.reads": [23, "with `database_read_url` search, reports and the console's lists read the replica"],
  "beyond.replica.lag": [23, "a replica that is further behind than `max_lag` is not asked, the primary is"],
  "beyond.replica.shown": [23, "`/v1/status`, `/readyz` and the metric `svc_replica_lag_seconds` show the lag"],
  "beyond.replica.decides": [23, "nothing that decides reads a replica"],
  "beyond.replica.gone": [23, "a replica that does not answer costs nobody an answer"],
});

// biome-ignore format: one statement a line
export const beyondBeside = section("beyond", "Deciding beside each other", {
  "beyond.beside.decided-ahead": [23, "on PostgreSQL a server that is not alone decides a batch before it takes the head"],
  "beyond.beside.again": [23, "a batch whose facts changed meanwhile is decided again"],
  "beyond.beside.sealed": [23, "it is sealed where it comes to stand: one chain, and documents that name the right places"],
  "beyond.beside.approvals": [23, "an approval that two servers decided on is used once"],
  "beyond.beside.limits": [23, "a limit that two servers decided on is not over"],
  "beyond.beside.halts": [23, "a call that was decided before a halt was answered, and would be recorded after it, is blocked"],
});

// biome-ignore format: one statement a line
export const beyondBackup = section("beyond", "Backups", {
  "beyond.backup.live": [23, "`svc backup --out` beside a live server on files or sqlite writes one archive, readable by its owner alone, of one moment"],
  "beyond.backup.restores": [23, "what is unpacked from it verifies with the head that was printed, starts, and is gone on from"],
  "beyond.backup.refusals": [23, "it replaces no file and makes no store; for PostgreSQL and for a server elsewhere it says how"],
});

// biome-ignore format: one statement a line
export const beyondStandby = section("beyond", "Standbys", {
  "beyond.standby.verify": [23, "`svc verify` works on a read-only standby"],
  "beyond.standby.promoted": [23, "with a synchronous standby promoted a server goes on by itself, and nothing that was answered is lost"],
  "beyond.standby.hosts": [23, "a database URL may name several hosts; the one that takes writes is used"],
  "beyond.standby.tls": [23, "TLS to the database is what its URL says, and a server that cannot be verified is not spoken to"],
  "beyond.standby.one-replica": [23, "`database_read_url` names one host"],
});

// biome-ignore format: one statement a line
export const beyondHolds = section("beyond", "No request stalls the others", {
  "beyond.heavy.diff-bounded": [33, "a diff compares a fixed number of lines at most, whatever the two texts are, and shows both in full where that is not enough"],
  "beyond.heavy.parsed-in-place": [33, "a policy or manifest is parsed in place only if all passes over it read at most 4,096 characters, and in a thread otherwise"],
  "beyond.heavy.pdf-thread": [33, "every PDF is laid out in a thread, and a request that ends stops it"],
  "beyond.heavy.paced": [33, "large values are read, hashed, checked and masked in turns, each of a bounded number of values and characters"],
  "beyond.heavy.names": [33, "thousands of names that are masked alike cost no more than as many others"],
  "beyond.heavy.unit": [33, "a unit of work looks through no large value: what it asks about one was worked out before"],
  "beyond.heavy.card-once": [33, "a card that was shown is not made again for the decision by it, nor for a list, while nothing that it shows has changed"],
  "beyond.heavy.card-pauses": [33, "building a card pauses in turns, also between thousands of names at any depth"],
  "beyond.heavy.others": [33, "decisions continue while the largest call, card or plan is worked on"],
  "beyond.heavy.linear-patterns": [33, "every regular expression that reads input takes time in proportion to its length"],
  "beyond.heavy.names-listed": [33, "a request names a bounded number of its arguments; the rest are counted"],
  "beyond.heavy.wide": [33, "the names of an object with thousands of members are listed once, whatever looks at it"],
  "beyond.heavy.reads": [33, "a store that answers reads from memory answers a bounded number of reads and rows in one turn of the event loop"],
  "beyond.heavy.page": [33, "the page of a plan draws a bounded number of lines, and opens each further call by a link"],
  "beyond.heavy.html-flat": [33, "a page holds a long text in a few pieces, however many characters of it are escaped"],
  "beyond.heavy.values-thread": [33, "a large value of a request is stored as text; a thread reads the call and draws its card, hands back finished text, and the event loop parses no stored value"],
  "beyond.heavy.turns": [33, "the works of one turn of the event loop share its time, however short each is"],
  "beyond.heavy.attack": [33, "`npm run attack -- heavy` prints the longest hold of each page and route next to what reading a body of 1 MB takes"],
});
