/**
 * Sums of amounts as people write them: 0.1 and 0.2 make 0.3. A sum is never below the exact one, so
 * that a budget cannot be stretched by rounding.
 */

interface Decimal {
  digits: bigint;
  exponent: number;
}

function decimal(value: number): Decimal {
  const [, whole, fraction = "", power = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  return { digits: BigInt(whole! + fraction), exponent: Number(power) - fraction.length };
}

function scaled({ digits, exponent }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(exponent - to);
}

/** The sum of two amounts that are not negative. */
export function addUp(a: number, b: number): number {
  const plain = a + b;
  if (Number.isSafeInteger(a) && Number.isSafeInteger(b) && Number.isSafeInteger(plain)) return plain;
  if (plain >= Number.MAX_VALUE) return Number.MAX_VALUE;
  return combined(a, b, 1n);
}

/** What is left of a sum without one of its amounts; never below nothing. */
export function takeOff(sum: number, amount: number): number {
  // What a sum that ran over really was is not known any more.
  if (sum >= Number.MAX_VALUE) return sum;
  return amount >= sum ? 0 : combined(sum, amount, -1n);
}

function combined(a: number, b: number, sign: 1n | -1n): number {
  const [x, y] = [decimal(a), decimal(b)];
  const exponent = Math.min(x.exponent, y.exponent);
  const exact = scaled(x, exponent) + sign * scaled(y, exponent);
  const near = Number(`${exact}e${exponent}`);
  const back = decimal(near);
  const common = Math.min(exponent, back.exponent);
  return scaled(back, common) >= scaled({ digits: exact, exponent }, common) ? near : nextUp(near);
}

const view = new DataView(new ArrayBuffer(8));

function nextUp(value: number): number {
  view.setFloat64(0, value);
  view.setBigUint64(0, view.getBigUint64(0) + 1n);
  return view.getFloat64(0);
}
