/**
 * Decimal sums of amounts: 0.1 and 0.2 make 0.3. A sum is never below the exact one, so that rounding cannot extend a
 * budget.
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

/** Adds two amounts that are not negative. */
export function sumAmounts(a: number, b: number): number {
  const plain = a + b;
  if (Number.isSafeInteger(a) && Number.isSafeInteger(b) && Number.isSafeInteger(plain)) return plain;
  if (plain >= Number.MAX_VALUE) return Number.MAX_VALUE;
  return combined(a, b, 1n);
}

/** Subtracts an amount from a sum; never below 0. */
export function subtractAmount(sum: number, amount: number): number {
  // The true value of an overflowed sum is unknown.
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
