/** The demo's link: opening it shows a button, the button lets in, once, for ten minutes, on this machine. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OneTimeLink } from "../../src/console/session/one-time-link.ts";
import { verifies } from "../support/verifies.ts";
import { Client } from "./support/client.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "./support/server.ts";

const env = shiftedEnv();
let server: ConsoleServer;
let link: OneTimeLink;
beforeAll(async () => {
  server = await consoleServer({
    env,
    async link(app) {
      const as = (key: string) => app.auth.authenticateToken(key);
      const admin = await as("admin");
      expect(() => new OneTimeLink(env, admin)).toThrow("cannot sign in an admin");
      link = new OneTimeLink(env, await as("operator"));
      return link;
    },
  });
});
afterAll(() => server.close());

const csrfOf = (text: string): string => /name="csrf" value="([0-9a-f]+)"/.exec(text)![1]!;
const token = () => new URLSearchParams(link.path.split("?")[1]).get("token")!;

describe("the link of a demo", () => {
  it("is spent by its button alone, and once", async () => {
    verifies("beyond.first.link-spent", "beyond.first.link");
    // A preview opens it, more than once.
    const preview = new Client(server.url);
    for (let i = 0; i < 2; i++) expect((await preview.get(link.path)).status).toBe(200);
    expect((await preview.get("/console")).status).toBe(303);

    const person = new Client(server.url);
    const page = await person.get(link.path);
    expect(page.headers["referrer-policy"]).toBe("no-referrer");
    const fields = { csrf: csrfOf(page.text), token: token() };
    expect((await person.post("/console/login/link", { ...fields, csrf: "" })).status).toBe(403);
    expect((await person.post("/console/login/link", { ...fields, token: "x" })).status).toBe(403);
    expect((await person.get(link.path, { host: "demo.example" })).status).toBe(403);
    env.forward(500_000);
    const entered = await person.post("/console/login/link", fields);
    expect([entered.status, entered.to]).toEqual([303, "/console"]);
    const { text } = await person.get("/console");
    expect(text).toContain('<span class="who-role">operator</span>');

    const late = new Client(server.url);
    const refused = await late.get(link.path);
    expect(refused.status).toBe(403);
    verifies("beyond.first.link-words");
    expect(refused.text).toContain("This link was already used. It works only once.");
    expect(refused.text).toContain("restart the demo");
    expect(refused.text).toContain('href="/console/login"');
    expect(refused.text).not.toContain("don't have permission");
  });

  it("ends after ten minutes, and is not there without a demo", async () => {
    verifies("beyond.first.link-spent", "beyond.first.link");
    const { app } = server;
    const other = await consoleServer({
      env,
      link: async () => {
        link = new OneTimeLink(env, await app.auth.authenticateToken("operator"));
        return link;
      },
    });
    const person = new Client(other.url);
    const fields = { csrf: csrfOf((await person.get(link.path)).text), token: token() };
    env.forward(600_000);
    const expired = await person.post("/console/login/link", fields);
    expect(expired.status).toBe(403);
    verifies("beyond.first.link-words");
    expect(expired.text).toContain("This link has expired. It is valid for ten minutes.");
    expect((await person.get("/console/login/link?token=x")).text).toContain(
      "not the link that the running demo",
    );
    await other.close();

    const plain = await consoleServer({ env });
    const nobody = new Client(plain.url);
    expect((await nobody.get("/console/login/link?token=x")).status).toBe(303);
    await plain.close();
  });
});
