/** Ed25519 public keys under which signatures prove nothing. */

/** The y coordinates of the points of small order, little-endian, without the sign bit. */
const SMALL_ORDER: ReadonlySet<string> = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  `ec${"ff".repeat(30)}7f`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
]);

/** Whether an attacker can forge signatures for the key, or it has a second spelling (y not below the prime). */
export function isWeakEd25519(raw: Uint8Array): boolean {
  const y = Buffer.from(raw);
  y[31] = y[31]! & 0x7f;
  const isUnreduced = y[0]! >= 0xed && y[31] === 0x7f && y.subarray(1, 31).every((byte) => byte === 0xff);
  return isUnreduced || SMALL_ORDER.has(y.toString("hex"));
}
