import { afterAll, describe, expect, it } from "vitest";
import { startReceiver } from "../../test/golden/notify/support/receivers.ts";
import { verifies } from "../../test/support/verifies.ts";
import { createEgress } from "./egress.ts";
import type { ResolvedAddress } from "./guard.ts";
import { EgressRefusedError } from "./refusal.ts";

const PUBLIC: ResolvedAddress = { address: "93.184.216.34", family: 4 };
const LOOPBACK: ResolvedAddress = { address: "127.0.0.1", family: 4 };
const METADATA: ResolvedAddress = { address: "::ffff:a9fe:a9fe", family: 6 };
const answers =
  (...entries: ResolvedAddress[]) =>
  () =>
    Promise.resolve(entries);
const closers: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closers.map((close) => close())));

async function refusedBy(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EgressRefusedError);
  return (error as EgressRefusedError).refusal.rule;
}

describe("allow list", () => {
  const lookup = answers(PUBLIC);
  const rule = async (allow: string[] | undefined, url: string) =>
    (await createEgress({ allow, block_private: false }, { lookup }).check(url))?.rule ?? null;

  it.each([
    [undefined, "https://anything.example/", null],
    [[], "https://anything.example/", "allow"],
    [["hooks.example.com"], "https://hooks.example.com/x", null],
    [["hooks.example.com"], "https://HOOKS.example.com./x", null],
    [["hooks.example.com."], "https://hooks.example.com/x", null],
    [["hooks.example.com"], "https://hooks.example.com.evil.test/", "allow"],
    [["*.example.com"], "https://example.com/", "allow"],
    [["*.example.com"], "https://a.example.com/", null],
    [["*.example.com"], "https://a.b.example.com/", null],
    [["*.example.com"], "https://evilexample.com/", "allow"],
    [["{api,hooks}.example.com"], "https://api.example.com/", null],
    [["*"], "https://anything.example/", null],
    [["b\u00fccher.example"], "https://xn--bcher-kva.example/", null],
    [["*.b\u00fccher.example"], "https://a.xn--bcher-kva.example/", null],
    [["10.0.0.*"], "http://10.0.0.7/", null],
    [["10.0.0.*"], "http://10.0.0.evil.example/", "allow"],
    [["[::1]"], "http://[::1]:80/", null],
    [["0:0:0:0:0:0:0:1"], "http://[::1]/", null],
    [["169.254.169.254", "*"], "http://169.254.169.254/", "metadata"],
  ] as const)("%j lets %s: %s", async (allow, url, want) => {
    verifies("ops.egress.allow", "contract.readings.egress-empty", "contract.readings.egress-globs");
    expect(await rule(allow as string[] | undefined, url)).toBe(want);
  });

  it("refuses a pattern that is not a host", () => {
    for (const bad of [
      "https://a.example",
      "a.example:443",
      "a.example/path",
      "",
      "user@a.example",
      "[::1]:80",
    ]) {
      expect(() => createEgress({ allow: [bad], block_private: false })).toThrow(/host pattern/);
    }
  });

  it("does not look a refused host up", async () => {
    let lookups = 0;
    const egress = createEgress(
      { allow: ["a.example"], block_private: true },
      {
        lookup: () => {
          lookups++;
          return Promise.resolve([PUBLIC]);
        },
      },
    );
    await egress.check("http://secret-data.evil.example/");
    expect(await refusedBy(egress.request("http://secret-data.evil.example/"))).toBe("allow");
    expect(lookups).toBe(0);
  });
});

describe("addresses that nothing is sent to", () => {
  const egress = createEgress({ block_private: false, region: "eu-1" }, { lookup: answers(PUBLIC) });

  it.each([
    ["not a url", "url"],
    ["", "url"],
    ["file:///etc/passwd", "scheme"],
    ["ftp://a.example/", "scheme"],
    ["gopher://a.example/", "scheme"],
    ["data:text/plain,hello", "scheme"],
    ["javascript:alert(1)", "scheme"],
    ["https://user:pass@a.example/", "userinfo"],
    ["https://user@a.example/", "userinfo"],
    ["http://.../", "url"],
  ])("%s is refused by rule %s", async (url, rule) => {
    verifies("ops.egress.schemes");
    expect((await egress.check(url))?.rule).toBe(rule);
    expect(await refusedBy(egress.request(url))).toBe(rule);
    expect(await refusedBy(egress.fetch(url))).toBe(rule);
  });

  it("names rule and region and never the path", async () => {
    verifies("ops.egress.region-shown", "ops.egress.region-label", "ops.egress.metadata-refused");
    const refused = await egress.check("http://169.254.169.254/secret-path?token=1");
    expect(refused?.message).toBe(
      'egress rule "metadata" refuses 169.254.169.254 (region eu-1): it resolves to a cloud metadata address',
    );
  });

  it("says that a name does not resolve", async () => {
    const broken = createEgress(
      { block_private: false },
      { lookup: () => Promise.reject(new Error("ENOTFOUND")) },
    );
    expect((await broken.check("http://nowhere.example/"))?.rule).toBe("unresolved");
    await expect(broken.request("http://nowhere.example/")).rejects.toThrow(/cannot resolve nowhere.example/);
  });
});

describe("resolution", () => {
  it("refuses a set of addresses in which one is private", async () => {
    verifies("ops.egress.block-private");
    const receiver = await startReceiver();
    closers.push(receiver.close);
    for (const set of [[PUBLIC, LOOPBACK], [LOOPBACK, PUBLIC], [LOOPBACK]]) {
      const egress = createEgress({ block_private: true }, { lookup: answers(...set) });
      expect((await egress.check(receiver.url("/", "mixed.test")))?.rule).toBe("private");
      expect(await refusedBy(egress.request(receiver.url("/", "mixed.test")))).toBe("private");
      expect(await refusedBy(egress.fetch(receiver.url("/", "mixed.test")))).toBe("private");
    }
    const lenient = createEgress({ block_private: false }, { lookup: answers(LOOPBACK, METADATA) });
    expect(await refusedBy(lenient.request(receiver.url("/", "mixed.test")))).toBe("metadata");
    expect(receiver.connections()).toBe(0);
  });

  it("is not fooled by a name that changes its address between check and connection", async () => {
    verifies("ops.egress.resolved-first");
    const receiver = await startReceiver();
    closers.push(receiver.close);
    let calls = 0;
    const lookup = () => Promise.resolve([calls++ % 2 === 0 ? PUBLIC : LOOPBACK]);
    const egress = createEgress({ block_private: true }, { lookup });
    expect(await egress.check(receiver.url("/", "rebind.test"))).toBe(null);
    expect(await refusedBy(egress.request(receiver.url("/", "rebind.test")))).toBe("private");
    expect(receiver.connections()).toBe(0);
  });

  it("connects to the address that was judged and to no other", async () => {
    const receiver = await startReceiver();
    closers.push(receiver.close);
    let calls = 0;
    const lookup = () => {
      calls++;
      return Promise.resolve([LOOPBACK]);
    };
    const egress = createEgress({ block_private: false }, { lookup });
    const answer = await egress.request(receiver.url("/here", "pinned.test"));
    expect(answer.status).toBe(200);
    expect(calls).toBe(1);
    expect(receiver.received[0]?.headers["host"]).toBe(`pinned.test:${receiver.port}`);
    await egress.close();
  });

  it("pins a host for other protocols too", async () => {
    const egress = createEgress({ block_private: false }, { lookup: answers(LOOPBACK) });
    expect(await egress.checkHost("Mail.Test.", 25)).toEqual({
      address: "127.0.0.1",
      family: 4,
      port: 25,
      servername: "mail.test",
    });
    expect(await egress.checkHost("::1", 25)).toEqual({
      address: "::1",
      family: 6,
      port: 25,
      servername: undefined,
    });
    const strict = createEgress({ block_private: true }, { lookup: answers(LOOPBACK) });
    for (const host of ["mail.test", "0x7f.1", "2130706433", "[::ffff:7f00:1]", "localhost"]) {
      expect(await refusedBy(strict.checkHost(host, 25))).toBe("private");
    }
    expect(await refusedBy(egress.checkHost("169.254.169.254", 25))).toBe("metadata");
    for (const bad of ["", "a b", "a/b", "user@a", "a:25"]) {
      expect(await refusedBy(egress.checkHost(bad, 25))).toBe("url");
    }
  });
});

describe("describe", () => {
  it("says whether rules are in force", () => {
    expect(createEgress({ block_private: false }).describe().in_force).toBe(false);
    const told = createEgress({ allow: ["a.example"], block_private: true, region: "eu-1" }).describe();
    expect(told).toMatchObject({ in_force: true, allow: ["a.example"], block_private: true, region: "eu-1" });
    expect(createEgress({ allow: [], block_private: false }).describe().sentences[0]).toMatch(/No host/);
  });
});
