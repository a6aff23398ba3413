/** Runs inside: tries every way of the list and prints one line for each. Plain Node, so that any sandbox can run it. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

// One of the ways is a signal to every process here.
process.on("SIGTERM", () => {});

const { ways, env } = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const { group, way, script } of ways) {
  // A program that exhausts the machine without reaching a limit has escaped, and so has one that silences a service.
  const isExhausting = group === "exhaustion";
  const { stdout, error } = spawnSync("bash", ["-c", script], {
    env: { ...process.env, ...env },
    timeout: isExhausting ? 60_000 : 6_000,
    killSignal: "SIGKILL",
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const isOut = /ESCAPED/.test(stdout ?? "") || (isExhausting && error !== undefined);
  const result = isOut ? "ESCAPED" : "held";
  process.stdout.write(`${JSON.stringify({ group, way, result })}\n`);
}
