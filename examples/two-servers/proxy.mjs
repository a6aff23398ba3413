/** The smallest thing that can stand before two servers: it takes turns, and skips a server that is gone. */
import { createServer, request } from "node:http";

export function balance(targets) {
  let turn = 0;
  const server = createServer(async (incoming, outgoing) => {
    const body = Buffer.concat(await incoming.toArray());
    const order = targets.map((_, i) => targets[(turn + i) % targets.length]);
    turn++;
    const attempt = () => {
      const { method, url, headers } = incoming;
      const onward = request(new URL(url, order.shift()), { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      });
      // Nothing was sent to a server that refuses connections, so the next one may be asked.
      onward.once("error", (error) => {
        if (order.length > 0 && error.code === "ECONNREFUSED") attempt();
        else
          outgoing
            .writeHead(502, { "content-type": "application/json" })
            .end('{"error":"no server answers"}');
      });
      onward.end(body);
    };
    attempt();
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () =>
      resolve({ url: `http://127.0.0.1:${server.address().port}`, server }),
    );
  });
}
