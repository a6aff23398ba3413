/** The ceiling: a plain server that parses the body and answers at once. */
import { createServer } from "node:http";

const ANSWER = '{"decision":"allow","step":0}';
createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    if (chunks.length > 0) JSON.parse(Buffer.concat(chunks).toString("utf8"));
    response.writeHead(200, { "content-type": "application/json", "content-length": ANSWER.length });
    response.end(ANSWER);
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
