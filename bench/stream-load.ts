/** Intents over one WebSocket, so many in progress at once: what a client pays that keeps one connection. */
import WebSocket from "ws";

export interface StreamLoad {
  /** Keeps this many intents in progress for so many seconds; returns how many were answered. */
  intents(lanes: number, seconds: number): Promise<number>;
  close(): void;
}

export async function overStream(
  port: number,
  key: string,
  run_id: string,
  body: string,
): Promise<StreamLoad> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
  });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const head = `,"operation":"intent","params":{"id":${JSON.stringify(run_id)}},"body":${body}}`;
  let next = 0;
  return {
    intents: (lanes, seconds) =>
      new Promise((resolve, reject) => {
        const end = performance.now() + seconds * 1_000;
        let answered = 0;
        let open = 0;
        const ask = () => {
          open++;
          socket.send(`{"id":${next++}${head}`);
        };
        const done = (settle: () => void) => {
          socket.removeAllListeners("message");
          socket.removeAllListeners("close");
          settle();
        };
        socket.once("close", (code) => done(() => reject(new Error(`the stream closed with code ${code}`))));
        socket.on("message", (data) => {
          open--;
          const { status } = JSON.parse(String(data)) as { status: number };
          if (status !== 200 && status !== 201)
            done(() => reject(new Error(`an intent over the stream got ${status}`)));
          answered++;
          if (performance.now() < end) ask();
          else if (open === 0) done(() => resolve(answered));
        });
        for (let lane = 0; lane < lanes; lane++) ask();
      }),
    close: () => socket.close(),
  };
}
