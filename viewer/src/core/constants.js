// The constants of SHA-2: the first bits after the point of the roots of the first primes. They are computed, not
// typed, with whole numbers only; SHA-256 takes the first 32 bits of what SHA-512 takes 64 of.

function firstPrimes(count) {
  const found = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

/** The first 64 bits after the point of a root, by searching for the whole root of prime * 2^(64 * degree). */
function rootBits(prime, degree) {
  const target = BigInt(prime) << (64n * degree);
  let low = 0n;
  let high = 1n << 70n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** degree <= target) low = middle;
    else high = middle;
  }
  return BigInt.asUintN(64, low);
}

export const CUBE_ROOTS = firstPrimes(80).map((prime) => rootBits(prime, 3n));
export const SQUARE_ROOTS = firstPrimes(8).map((prime) => rootBits(prime, 2n));
