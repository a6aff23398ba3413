/**
 * Classifies IP addresses. An IPv6 address can embed an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP and similar).
 * Both count, because the network unwraps it. Unreadable addresses count as private, so that no unknown notation gets
 * out.
 */
import ipaddr from "ipaddr.js";

type AddressKind = "public" | "private" | "metadata";

interface AddressClass {
  readonly kind: AddressKind;
  /** The name of the range, for the error message. */
  readonly range: string;
}

/**
 * Addresses of cloud metadata services, which give credentials to any local caller. Both /24 ranges hold nothing else
 * of use.
 */
const METADATA_V4_RANGES = ["169.254.169.0/24", "169.254.170.0/24"].map((cidr) =>
  ipaddr.IPv4.parseCIDR(cidr),
);
const METADATA_V4 = new Set([
  "100.100.100.200", // Alibaba Cloud
  "168.63.129.16", // Azure host channel
  "169.254.0.23", // Tencent Cloud
  "169.254.42.42", // Scaleway
  "192.0.0.192", // Oracle Cloud
]);
const METADATA_V6 = new Set(
  ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe"].map((text) =>
    ipaddr.IPv6.parse(text).toNormalizedString(),
  ),
);

const RANGE_WORDS: Record<string, string> = {
  unspecified: "unspecified",
  loopback: "loopback",
  private: "private",
  uniqueLocal: "private",
  linkLocal: "link-local",
  carrierGradeNat: "carrier-grade NAT",
  multicast: "multicast",
  broadcast: "broadcast",
  "6to4": "6to4",
  teredo: "Teredo",
};

const PUBLIC: AddressClass = { kind: "public", range: "public" };
const METADATA: AddressClass = { kind: "metadata", range: "cloud metadata" };
const isPrivate = (range: string): AddressClass => ({ kind: "private", range });

export function classifyAddress(text: string): AddressClass {
  if (!ipaddr.isValid(text)) return isPrivate("unreadable");
  const address = ipaddr.parse(text);
  return address instanceof ipaddr.IPv4 ? classifyV4(address) : classifyV6(address as ipaddr.IPv6);
}

function classifyV4(address: ipaddr.IPv4): AddressClass {
  if (METADATA_V4.has(address.toString())) return METADATA;
  if (METADATA_V4_RANGES.some((cidr) => address.match(cidr))) return METADATA;
  const range = address.range();
  return range === "unicast" ? PUBLIC : isPrivate(RANGE_WORDS[range] ?? "reserved");
}

function classifyV6(address: ipaddr.IPv6): AddressClass {
  const plain = new ipaddr.IPv6(address.parts);
  if (METADATA_V6.has(plain.toNormalizedString())) return METADATA;
  const bytes = plain.toByteArray();
  const inside = embeddedV4(bytes);
  // Also checks the last four bytes of any address: a NAT64 gateway can use the operator's own prefix.
  for (const v4 of [...inside.candidates, v4At(bytes, 12, 13, 14, 15)]) {
    if (classifyV4(v4).kind === "metadata") return METADATA;
  }
  if (inside.stands_for !== undefined) return classifyV4(inside.stands_for);
  const range = plain.range();
  if (range !== "unicast") return isPrivate(RANGE_WORDS[range] ?? "reserved");
  if (inside.candidates.length > 0) return isPrivate("IPv4 inside IPv6");
  // Global unicast addresses are all in 2000::/3. The rest should not be reachable.
  return bytes[0]! >> 5 === 1 ? PUBLIC : isPrivate("reserved");
}

interface Embedded {
  /** Set if the IPv6 address is only another notation for this IPv4 address. */
  readonly stands_for: ipaddr.IPv4 | undefined;
  /** Every IPv4 address that a tunnel or translator could extract. */
  readonly candidates: readonly ipaddr.IPv4[];
}

function embeddedV4(bytes: readonly number[]): Embedded {
  const starts = (...prefix: number[]) => prefix.every((byte, i) => bytes[i] === byte);
  const zeros = (from: number, to: number) => bytes.slice(from, to).every((byte) => byte === 0);
  const last = v4At(bytes, 12, 13, 14, 15);
  const same = (v4: ipaddr.IPv4): Embedded => ({ stands_for: v4, candidates: [v4] });
  const tunnel = (...candidates: ipaddr.IPv4[]): Embedded => ({ stands_for: undefined, candidates });

  if (zeros(0, 10) && bytes[10] === 0xff && bytes[11] === 0xff) return same(last); // ::ffff:0:0/96
  if (starts(0x00, 0x64, 0xff, 0x9b) && zeros(4, 12)) return same(last); // 64:ff9b::/96, NAT64
  if (starts(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01)) {
    // 64:ff9b:1::/48, local NAT64: RFC 6052 puts the address in one of four positions.
    return tunnel(last, v4At(bytes, 6, 7, 9, 10), v4At(bytes, 7, 9, 10, 11), v4At(bytes, 9, 10, 11, 12));
  }
  if (zeros(0, 8) && bytes[8] === 0xff && bytes[9] === 0xff && zeros(10, 12)) return tunnel(last); // ::ffff:0:0:0/96
  if (zeros(0, 12) && !(zeros(12, 15) && bytes[15]! <= 1)) return tunnel(last); // ::/96, IPv4-compatible
  if (starts(0x20, 0x02)) return tunnel(v4At(bytes, 2, 3, 4, 5)); // 2002::/16, 6to4
  if (starts(0x20, 0x01, 0x00, 0x00)) {
    // 2001::/32, Teredo: the server address in the clear, the client address with every bit flipped.
    const flipped = bytes.map((byte) => byte ^ 0xff);
    return tunnel(v4At(bytes, 4, 5, 6, 7), v4At(flipped, 12, 13, 14, 15));
  }
  const isatap = (bytes[8]! & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
  return isatap ? tunnel(last) : tunnel();
}

function v4At(bytes: readonly number[], a: number, b: number, c: number, d: number): ipaddr.IPv4 {
  return new ipaddr.IPv4([bytes[a]!, bytes[b]!, bytes[c]!, bytes[d]!]);
}
