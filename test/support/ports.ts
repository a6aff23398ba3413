/** A port that a server of a test can have, and have again after a restart. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below those that a system hands out on its own: no client and no `listen(0)` takes it while its server is down. */
const [FIRST, LAST] = [20_000, 32_000];

export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if (await canListen(host, port)) return port;
  }
}

function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
