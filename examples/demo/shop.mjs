/**
 * The public side of the demo's shop: one page on a loopback port that shows refunds, tickets, notes and emails from
 * the desk's file. Open pages follow each change, made by the agent or by a rollback, within a second.
 */
import { createServer } from "node:http";
import { pageOf, SCRIPT, STYLE } from "./shop-page.mjs";

const LOOPBACK = "127.0.0.1";
const POLL_MS = 100;
const MAX_PORT = 65_535;

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; img-src data:; style-src 'self'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** Serves the shop next to `port`, or on any free port if that one is taken. */
export async function serveShop({ desk, port, console_url }) {
  const page = () => pageOf(desk.read(), console_url);
  const routes = {
    "/": (response) => send(response, "text/html", page()),
    "/shop.css": (response) => send(response, "text/css", STYLE),
    "/shop.js": (response) => send(response, "text/javascript", SCRIPT),
    "/events": (response) => follow(response, page),
  };
  const server = createServer((request, response) => {
    const route = Object.hasOwn(routes, request.url) ? routes[request.url] : null;
    if (route !== null && request.method === "GET") return route(response);
    response.writeHead(404, { ...HEADERS, "content-type": "text/plain" }).end("not found\n");
  });
  const listen = (at) =>
    new Promise((resolve, reject) => {
      server.once("error", reject).listen(at, LOOPBACK, () => resolve(server.removeAllListeners("error")));
    });
  const wanted = port < MAX_PORT ? port : 0;
  await listen(wanted).catch(() => listen(0));
  return {
    url: `http://${LOOPBACK}:${server.address().port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

function send(response, type, text) {
  response.writeHead(200, { ...HEADERS, "content-type": `${type}; charset=utf-8` }).end(text);
}

/** Sends an event for each change of the page. A rollback runs in another process, so the file is read again. */
function follow(response, page) {
  response.writeHead(200, { ...HEADERS, "content-type": "text/event-stream" });
  let shown = page();
  response.write("retry: 1000\ndata: open\n\n");
  const timer = setInterval(() => {
    const now = page();
    if (now !== shown) response.write("data: changed\n\n");
    shown = now;
  }, POLL_MS);
  response.once("close", () => clearInterval(timer));
}
