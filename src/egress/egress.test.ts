import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { selfSigned } from "../../test/golden/notify/support/certificate.ts";
import { type Answer, type Receiver, startReceiver } from "../../test/golden/notify/support/receivers.ts";
import { verifies } from "../../test/support/verifies.ts";
import { createEgress, type EgressClient } from "./egress.ts";
import { GuardedExchange, wasNotSent } from "./exchange.ts";
import { EgressRefusedError } from "./refusal.ts";

const lookup = () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
const open: { close(): Promise<void> }[] = [];
const receiver = async (answer?: Answer, tls?: { key: string; cert: string }): Promise<Receiver> => {
  const started = await startReceiver(answer, tls);
  open.push(started);
  return started;
};
const newEgress = (block_private = false): EgressClient => {
  const egress = createEgress({ block_private }, { lookup });
  open.push(egress);
  return egress;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((thing) => thing.close()));
});

const redirectTo =
  (location: string, status = 302): Answer =>
  (_request, response) =>
    response.writeHead(status, { location }).end();
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8");
async function ruleOf(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(EgressRefusedError);
  return (error as EgressRefusedError).refusal.rule;
}

describe("request", () => {
  it("sends method, headers and body, and reads the answer", async () => {
    const server = await receiver((_request, response) =>
      response.writeHead(202, { "x-a": "b" }).end("taken"),
    );
    const answer = await newEgress().request(server.url("/in?x=1"), {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer k" },
      body: '{"a":1}',
    });
    expect([answer.status, answer.headers["x-a"], text(answer.body)]).toEqual([202, "b", "taken"]);
    expect(server.received[0]).toMatchObject({ method: "POST", path: "/in?x=1", body: '{"a":1}' });
    expect(server.received[0]?.headers).toMatchObject({ authorization: "Bearer k", "user-agent": "svc" });
  });

  it("answers with any status rather than throwing", async () => {
    const server = await receiver((_request, response) => response.writeHead(503).end("later"));
    expect((await newEgress().request(server.url())).status).toBe(503);
  });

  it("gives up at the deadline, before headers and inside a body", async () => {
    const silent = await receiver(() => undefined);
    await expect(newEgress().request(silent.url("/secret"), { timeout_ms: 80 })).rejects.toThrow(
      `no answer from 127.0.0.1:${silent.port} within 80 ms`,
    );
    const slow = await receiver((_request, response) => {
      response.write("begin");
    });
    await expect(newEgress().request(slow.url(), { timeout_ms: 80 })).rejects.toThrow(/no answer/);
  });

  it("tells an exchange that may have taken effect from one that was not sent", async () => {
    verifies("beyond.http.result");
    const server = await receiver(() => undefined);
    const exchange = new GuardedExchange({ block_private: false }, { idle_ms: 80, total_ms: 1_000 });
    const sendTo = (port: number) =>
      exchange
        .send({
          scheme: "http",
          host: "127.0.0.1",
          port,
          method: "POST",
          target: "/",
          headers: ["Host", "a.test"],
          body: undefined,
        })
        .catch((thrown: unknown) => thrown);
    const late = await sendTo(server.port);
    expect([String(late), wasNotSent(late)]).toEqual([
      expect.stringContaining("no answer from 127.0.0.1 within 80 ms"),
      false,
    ]);
    await server.close();
    expect(wasNotSent(await sendTo(server.port))).toBe(true);
    exchange.close();
  });

  it("says what failed without the path, which may be a password", async () => {
    const server = await receiver();
    const url = server.url("/services/SECRET");
    await server.close();
    const error = await newEgress()
      .request(url)
      .catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/cannot reach 127\.0\.0\.1:\d+: ECONNREFUSED/);
    expect(String(error)).not.toContain("SECRET");
  });

  it("reads no more than the cap, also of a compressed answer", async () => {
    const long = await receiver((_request, response) => response.end("x".repeat(5_000)));
    const egress = newEgress();
    await expect(egress.request(long.url(), { max_bytes: 1_000 })).rejects.toThrow(/longer than 1000 bytes/);
    expect((await egress.request(long.url(), { max_bytes: 1_000, cut: true })).body).toHaveLength(1_000);
    expect((await egress.request(long.url(), { max_bytes: 5_000 })).body).toHaveLength(5_000);
    const bomb = await receiver((_request, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(20_000_000))),
    );
    await expect(egress.request(bomb.url())).rejects.toThrow(/longer than/);
  });

  it("stops when its caller aborts", async () => {
    const silent = await receiver(() => undefined);
    const abort = new AbortController();
    const work = newEgress().request(silent.url(), { signal: abort.signal });
    setTimeout(() => abort.abort(), 20);
    await expect(work).rejects.toThrow(/cannot reach/);
  });

  it("does not look at proxy variables", async () => {
    const proxy = await receiver();
    const server = await receiver();
    const names = [
      "HTTP_PROXY",
      "http_proxy",
      "HTTPS_PROXY",
      "https_proxy",
      "ALL_PROXY",
      "NODE_USE_ENV_PROXY",
    ];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = name.startsWith("NODE") ? "1" : proxy.url();
    try {
      await newEgress().request(server.url());
      await newEgress().fetch(server.url());
    } finally {
      names.forEach((name, i) => {
        if (before[i] === undefined) delete process.env[name];
        else process.env[name] = before[i];
      });
    }
    expect([proxy.connections(), server.received.length]).toEqual([0, 2]);
  });

  it("verifies certificates even where the environment says not to", async () => {
    const server = await receiver(undefined, selfSigned(["a.test"]));
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      await expect(newEgress().request(server.url("/", "a.test"))).rejects.toThrow(/CERT/);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
    expect(server.received).toEqual([]);
  });
});

describe("redirects", () => {
  const chain =
    (length: number): Answer =>
    (request, response) => {
      const n = Number(request.path.slice(1));
      if (n >= length) response.end("end");
      else response.writeHead(302, { location: `/${n + 1}` }).end();
    };

  it("follows three and refuses a fourth", async () => {
    verifies("ops.egress.redirects-three", "ops.limit.redirects");
    const three = await receiver(chain(3));
    expect(text((await newEgress().request(three.url("/0"))).body)).toBe("end");
    const four = await receiver(chain(4));
    expect(await ruleOf(newEgress().request(four.url("/0")))).toBe("redirects");
    expect(four.received).toHaveLength(4);
    expect(await ruleOf(newEgress().fetch(four.url("/0")))).toBe("redirects");
  });

  it.each([
    ["http://169.254.169.254/latest/meta-data", "metadata"],
    ["http://[::ffff:a9fe:a9fe]/", "metadata"],
    ["http://metadata.google.internal./", "metadata"],
    ["file:///etc/passwd", "scheme"],
    ["http://user:pass@other.test/", "userinfo"],
    ["http://[bad", "redirect_target"],
  ])("refuses one to %s by rule %s", async (location, rule) => {
    verifies("ops.egress.redirects-checked");
    const server = await receiver(redirectTo(location));
    expect(await ruleOf(newEgress().request(server.url()))).toBe(rule);
    expect(await ruleOf(newEgress().fetch(server.url()))).toBe(rule);
  });

  it("judges a redirect's host by its addresses too", async () => {
    const server = await receiver(redirectTo("http://inner.test/"));
    const egress = createEgress(
      { block_private: false },
      {
        lookup: (host) =>
          Promise.resolve([{ address: host === "inner.test" ? "169.254.169.254" : "127.0.0.1", family: 4 }]),
      },
    );
    open.push(egress);
    expect(await ruleOf(egress.request(server.url("/", "outer.test")))).toBe("metadata");
  });

  it("refuses the way from https down to http", async () => {
    const egress = createEgress({ block_private: false });
    const { nextHop } = await import("./redirect.ts");
    const from = {
      url: new URL("https://a.test/"),
      method: "GET",
      headers: {},
      has_body: false,
      replayable: true,
    };
    expect(nextHop(from, 302, "http://a.test/")).toEqual({ rule: "redirect_downgrade" });
    await egress.close();
  });

  const SECRETS = {
    authorization: "Bearer k",
    cookie: "s=1",
    "x-svc-signature": "sha256=00",
    "x-team-key": "k",
  };

  it.each([301, 302, 303])("%i does not turn a POST into a GET whose answer would count", async (status) => {
    const server = await receiver((request, response) => {
      if (request.path === "/") response.writeHead(status, { location: "/login" }).end();
      else response.end("log in");
    });
    for (const body of ["{}", undefined]) {
      const options = { method: "POST", headers: SECRETS, ...(body === undefined ? {} : { body }) };
      expect(await ruleOf(newEgress().request(server.url(), options))).toBe("redirect_method");
      expect(await ruleOf(newEgress().fetch(server.url(), options))).toBe("redirect_method");
    }
    expect(server.received.map(({ path }) => path)).toEqual(["/", "/", "/", "/"]);
  });

  it.each([301, 302, 303, 307])("%i to another host takes no secret there", async (status) => {
    const far = await receiver();
    const near = await receiver(redirectTo(far.url("/far", "far.test"), status));
    const headers = { ...SECRETS, accept: "text/x-mark" };
    await newEgress().request(near.url("/", "near.test"), { headers, secret_headers: ["accept"] });
    const got = far.received[0]!;
    expect(got.method).toBe("GET");
    for (const name of Object.keys(SECRETS)) expect(got.headers[name]).toBeUndefined();
    expect(got.headers["accept"]).not.toBe("text/x-mark");
  });

  it.each([307, 308])("%i to another host does not carry a body there", async (status) => {
    const far = await receiver();
    const near = await receiver(redirectTo(far.url("/far", "far.test"), status));
    const options = { method: "POST", headers: SECRETS, body: '{"signed":true}' };
    expect(await ruleOf(newEgress().request(near.url("/", "near.test"), options))).toBe("redirect_body");
    expect(await ruleOf(newEgress().fetch(near.url("/", "near.test"), options))).toBe("redirect_body");
    expect(far.connections()).toBe(0);
  });

  it("counts another port as another host", async () => {
    const far = await receiver();
    const near = await receiver(redirectTo(far.url("/far")));
    await newEgress().request(near.url(), { headers: SECRETS });
    for (const name of Object.keys(SECRETS)) expect(far.received[0]?.headers[name]).toBeUndefined();
  });

  it("resends body and signature to the same host", async () => {
    const server = await receiver((request, response) => {
      if (request.path === "/") response.writeHead(307, { location: "/moved" }).end();
      else response.end("ok");
    });
    await newEgress().request(server.url(), { method: "POST", headers: SECRETS, body: "{}" });
    expect(server.received[1]).toMatchObject({ method: "POST", path: "/moved", body: "{}" });
    expect(server.received[1]?.headers["x-svc-signature"]).toBe("sha256=00");
  });

  it("keeps private places shut when a public host redirects there", async () => {
    const { nextHop } = await import("./redirect.ts");
    const from = {
      url: new URL("http://a.test/"),
      method: "GET",
      headers: {},
      has_body: false,
      replayable: true,
    };
    const next = nextHop(from, 302, "http://127.0.0.1:1/");
    expect("hop" in next && (await newEgress(true).check(next.hop.url.href))?.rule).toBe("private");
  });
});

describe("fetch", () => {
  it("is what a library expects of fetch", async () => {
    const server = await receiver((request, response) => response.end(JSON.stringify({ got: request.body })));
    const { fetch } = newEgress();
    const answer = await fetch(server.url(), { method: "POST", body: "hello", headers: [["x-a", "b"]] });
    expect(await answer.json()).toEqual({ got: "hello" });
    const viaRequest = await fetch(
      new Request(server.url(), { method: "POST", body: "again", headers: { "x-a": "c" } }),
    );
    expect(await viaRequest.json()).toEqual({ got: "again" });
    expect(server.received.map((got) => got.headers["x-a"])).toEqual(["b", "c"]);
    expect(await (await fetch(new URL(server.url()))).json()).toEqual({ got: "" });
  });

  it("streams an answer while it is being written", async () => {
    let finish = () => {};
    const server = await receiver((_request, response) => {
      response.write("data: one\n\n");
      finish = () => response.end("data: two\n\n");
    });
    const answer = await newEgress().fetch(server.url());
    const reader = answer.body!.getReader();
    expect(text((await reader.read()).value!)).toBe("data: one\n\n");
    finish();
    expect(text((await reader.read()).value!)).toBe("data: two\n\n");
  });

  it("honours redirect: manual and error, and a signal", async () => {
    const server = await receiver(redirectTo("/next"));
    const { fetch } = newEgress();
    expect((await fetch(server.url(), { redirect: "manual" })).status).toBe(302);
    await expect(fetch(server.url(), { redirect: "error" })).rejects.toThrow(TypeError);
    const silent = await receiver(() => undefined);
    await expect(fetch(silent.url(), { signal: AbortSignal.timeout(50) })).rejects.toThrow();
  });
});
