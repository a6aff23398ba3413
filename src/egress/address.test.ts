import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it } from "vitest";
import { startReceiver } from "../../test/golden/notify/support/receivers.ts";
import { classifyAddress } from "./address.ts";
import { createEgress } from "./egress.ts";

const METADATA = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
];
const PRIVATE = [
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "10.1.2.3",
  "172.16.5.4",
  "172.31.255.255",
  "192.168.1.10",
  "169.254.1.1",
  "100.64.0.1",
  "198.18.0.1",
  "224.0.0.1",
  "255.255.255.255",
];
const PUBLIC = ["93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1"];

const hex2 = (n: number) => n.toString(16).padStart(2, "0");
const wide = (text: string) =>
  text.replace(/[0-9]/g, (digit) => String.fromCharCode(0xff10 + Number(digit))).replaceAll(".", "\u3002");
const circled = (text: string) =>
  text
    .replace(/[1-9]/g, (digit) => String.fromCharCode(0x2460 + Number(digit) - 1))
    .replaceAll("0", "\u24ea");

/** The same IPv4 address as hosts of a URL: forms that name it, and tunnels that lead to it. */
function spellings(dotted: string): { direct: string[]; tunnels: string[] } {
  const parts = dotted.split(".").map(Number);
  const [a, b, c, d] = parts as [number, number, number, number];
  const n = ((a * 256 + b) * 256 + c) * 256 + d;
  const hi = hex2(a) + hex2(b);
  const lo = hex2(c) + hex2(d);
  const flipped = parts.map((part) => hex2(part ^ 0xff));
  const octal = (value: number) => `0${value.toString(8)}`;
  return {
    direct: [
      dotted,
      `${dotted}.`,
      String(n),
      `0x${n.toString(16)}`,
      `0X${n.toString(16).toUpperCase()}`,
      `0x00000000${n.toString(16)}`,
      octal(n),
      `00000${octal(n)}`,
      parts.map((part) => `0x${part.toString(16)}`).join("."),
      parts.map(octal).join("."),
      `${a}.${(b * 256 + c) * 256 + d}`,
      `${a}.${b}.${c * 256 + d}`,
      `0x${a.toString(16)}.${b}.${octal(c)}.${d}`,
      wide(dotted),
      circled(dotted),
      `%3${dotted[0]}${dotted.slice(1)}`,
      `[::ffff:${dotted}]`,
      `[::ffff:${hi}:${lo}]`,
      `[0:0:0:0:0:FFFF:${hi}:${lo}]`,
      `[0000:0000:0000:0000:0000:ffff:${hi}:${lo}]`,
      `[64:ff9b::${dotted}]`,
      `[64:ff9b::${hi}:${lo}]`,
    ],
    tunnels: [
      `[64:ff9b:1::${hi}:${lo}]`,
      `[64:ff9b:1:${hi}:${hex2(c)}:${hex2(d)}00::]`,
      `[2002:${hi}:${lo}::1]`,
      `[2002:${hi}:${lo}:0:0:5efe:808:808]`,
      `[2001:0:808:808:0:0:${flipped[0]}${flipped[1]}:${flipped[2]}${flipped[3]}]`,
      `[2001:0:${hi}:${lo}::f7f7:f7f7]`,
      `[2a00:1450::5efe:${hi}:${lo}]`,
      `[2a00:1450::200:5efe:${hi}:${lo}]`,
      `[::ffff:0:${hi}:${lo}]`,
      `[::${hi}:${lo}]`,
    ],
  };
}

const noLookup = () => Promise.reject(new Error("an address must not be looked up"));
const strict = createEgress({ block_private: true }, { lookup: noLookup });
const lenient = createEgress({ block_private: false }, { lookup: noLookup });
const ruleOf = async (egress: typeof strict, host: string) =>
  (await egress.check(`http://${host}/`))?.rule ?? null;

describe("every spelling of an address", () => {
  let count = 0;

  it.each(METADATA)("refuses %s, a metadata address, with any settings", async (address) => {
    const { direct, tunnels } = spellings(address);
    for (const host of [...direct, ...tunnels]) {
      count++;
      expect([host, await ruleOf(lenient, host)]).toEqual([host, "metadata"]);
      expect([host, await ruleOf(strict, host)]).toEqual([host, "metadata"]);
    }
  });

  it.each(PRIVATE)("refuses %s where private addresses are blocked", async (address) => {
    const { direct, tunnels } = spellings(address);
    for (const host of [...direct, ...tunnels]) {
      count++;
      expect([host, await ruleOf(strict, host)]).toEqual([host, "private"]);
      expect([host, await ruleOf(lenient, host)]).toEqual([host, null]);
    }
  });

  it.each(PUBLIC)("lets %s out, but not through a tunnel", async (address) => {
    const { direct, tunnels } = spellings(address);
    for (const host of direct) {
      count++;
      expect([host, await ruleOf(strict, host)]).toEqual([host, null]);
    }
    for (const host of tunnels) {
      count++;
      expect([host, await ruleOf(strict, host)]).toEqual([host, "private"]);
    }
  });

  it("is a table of at least 300", () => {
    expect(count).toBeGreaterThanOrEqual(300);
  });
});

/** A header holds no full-width digits, but a host may be percent-encoded. */
const ascii = (host: string) => host.replace(/[^\x21-\x7e]/g, encodeURIComponent);

describe("every spelling as the target of a redirect", () => {
  it.each([1, 2, 3])("at depth %i no socket is opened towards it", async (depth) => {
    const hosts = METADATA.flatMap((address) => Object.values(spellings(address)).flat());
    const receiver = await startReceiver((request, response) => {
      const [, index, left] = request.path.split("/").map(Number) as [number, number, number];
      const location = left > 1 ? `/${index}/${left - 1}` : `http://${ascii(hosts[index]!)}/`;
      response.writeHead(302, { location }).end();
    });
    const reached = new Set<string>();
    const note = (message: unknown) => {
      reached.add((message as { connectParams: { hostname: string } }).connectParams.hostname);
    };
    subscribe("undici:client:beforeConnect", note);
    const egress = createEgress({ block_private: false }, { lookup: noLookup });
    try {
      for (let i = 0; i < hosts.length; i++) {
        const error = await egress.request(receiver.url(`/${i}/${depth}`)).catch((thrown: unknown) => thrown);
        expect([hosts[i], String(error)]).toEqual([
          hosts[i],
          expect.stringContaining('egress rule "metadata"'),
        ]);
      }
    } finally {
      unsubscribe("undici:client:beforeConnect", note);
      await egress.close();
      await receiver.close();
    }
    expect([...reached]).toEqual(["127.0.0.1"]);
    expect(receiver.received).toHaveLength(hosts.length * depth);
  });
});

describe("IPv6 and names", () => {
  it.each([
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[100::1]",
    "[4000::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "localhost.localdomain",
    "ip6-localhost",
  ])("refuses %s as private", async (host) => {
    expect(await ruleOf(strict, host)).toBe("private");
  });

  it.each([
    "[fd00:ec2::254]",
    "[FD00:0EC2::254]",
    "[fd00:ec2:0:0:0:0:0:254]",
    "[fd00:ec2::23]",
    "[fd20:ce::254]",
    "[fe80::a9fe:a9fe]",
    "[2a00:1450:64::a9fe:a9fe]",
    "metadata.google.internal",
    "metadata.google.internal.",
    "METADATA.google.INTERNAL",
    "metadata.goog",
    "x.metadata.google.internal",
    "metadata",
    "instance-data.ec2.internal",
  ])("refuses %s as metadata, whatever the settings", async (host) => {
    expect(await ruleOf(lenient, host)).toBe("metadata");
    expect(await ruleOf(strict, host)).toBe("metadata");
  });

  it("lets global unicast out", async () => {
    expect(await ruleOf(strict, "[2a00:1450:4001:80b::200e]")).toBe(null);
    expect(await ruleOf(strict, "[2606:4700::1111]")).toBe(null);
  });

  it("judges addresses as a resolver writes them, and distrusts what it cannot read", () => {
    expect(classifyAddress("fe80::1%eth0").kind).toBe("private");
    expect(classifyAddress("::ffff:169.254.169.254").kind).toBe("metadata");
    expect(classifyAddress("0x7f.1").kind).toBe("private");
    for (const text of ["", "evil", "1.2.3.4.5", "::g", "256.1.1.1"])
      expect(classifyAddress(text).kind).toBe("private");
  });
});
