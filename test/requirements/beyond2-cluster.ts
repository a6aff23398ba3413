/** Several servers on one database when machines fail. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Cluster = section("beyond", "When a machine is lost", {
  "beyond.cluster.clock": [44, "on PostgreSQL what expires does so by the database's clock, however wrong a server's own clock is"],
  "beyond.cluster.clock-warning": [44, "a server that is more than 5 s off logs a warning and shows it in `/readyz`; it measures every 10 s"],
});
