/** Several servers on one database when machines fail. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Cluster = section("beyond", "When a machine is lost", {
  "beyond.cluster.deploy": [44, "`deploy/ha` is a cluster whose primary waits for a standby, and whose templates are filled in whole"],
  "beyond.cluster.verdict": [44, "a cluster run is clean only without losses, forks, impossible histories and believed lies"],
  "beyond.cluster.found": [44, "a commit without an answer is done only once the standby has it"],
  "beyond.cluster.stopping": [44, "a server that stops answers what still arrives on its open connections"],
  "beyond.cluster.clock": [44, "on PostgreSQL what expires does so by the database's clock, however wrong a server's own clock is"],
  "beyond.cluster.clock-warning": [44, "a server that is more than 5 s off logs a warning and shows it in `/readyz`; it measures every 10 s"],
});
