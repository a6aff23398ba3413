/** Bodies taken as a whole, over sockets: in one piece, in pieces, late, and from clients that leave. */
import { createServer, type RequestListener, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { BufferedRequest, readRequestBody } from "./request-body.ts";

const open: { server: Server; socket: Socket }[] = [];
afterEach(() => {
  for (const { server, socket } of open.splice(0)) {
    socket.destroy();
    server.close();
  }
});

/** A connection to a server that answers by `listener`, and all that came back over it. */
async function connected(listener: RequestListener): Promise<{ socket: Socket; heard: () => string }> {
  const server = createServer({ IncomingMessage: BufferedRequest }, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as { port: number }).port, "127.0.0.1");
  open.push({ server, socket });
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  return { socket, heard: () => text };
}

const echo =
  (ask: (request: Parameters<RequestListener>[0]) => ReturnType<typeof readRequestBody>): RequestListener =>
  async (request, response) =>
    response.end(`[${Buffer.from((await ask(request)) ?? "left").toString()}]`);

const post = (body: string, length = body.length) =>
  `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${body}`;

describe("a body that is asked for as a whole", () => {
  it("is handed over, and so is the next one on the same connection", async () => {
    const { socket, heard } = await connected(echo(readRequestBody));
    socket.write(post("first"));
    await expect.poll(heard).toContain("[first]");
    socket.write(post("second"));
    await expect.poll(heard).toContain("[second]");
  });

  it("is handed over of requests that were sent at once, in their order", async () => {
    const { socket, heard } = await connected(echo(readRequestBody));
    socket.write(post("one") + post("two") + post("three"));
    await expect.poll(() => heard().match(/\[\w+\]/g)).toEqual(["[one]", "[two]", "[three]"]);
  });

  it("is put together of pieces, and of none", async () => {
    const { socket, heard } = await connected(echo(readRequestBody));
    socket.write(post("ab", 6));
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.write("cd");
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.write("ef");
    await expect.poll(heard).toContain("[abcdef]");
    socket.write(post(""));
    await expect.poll(heard).toContain("[]");
  });

  it("reaches a reader that asks when some or all of it has come", async () => {
    const late = echo(async (request) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return readRequestBody(request);
    });
    const { socket, heard } = await connected(late);
    socket.write(post("all of it"));
    await expect.poll(heard).toContain("[all of it]");
    const large = "x".repeat(300_000);
    socket.write(post(large));
    await expect.poll(heard).toContain(`[${large}]`);
  });

  it("is none where the client leaves, before it was asked for or after", async () => {
    for (const wait of [false, true]) {
      const got: unknown[] = [];
      const { socket } = await connected(async (request) => {
        if (wait) await new Promise((resolve) => request.once("close", resolve));
        got.push(await readRequestBody(request));
      });
      socket.write(post("ab", 6), () => setTimeout(() => socket.destroy(), 20));
      await expect.poll(() => got).toEqual([undefined]);
    }
  });

  it("leaves a request that nobody asks the stream it was", async () => {
    const { socket, heard } = await connected(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      response.end(`(${text})`);
    });
    socket.write(post("streamed"));
    await expect.poll(heard).toContain("(streamed)");
  });
});
