// SHA-512 (FIPS 180-4), needed once per signature and therefore written for brevity, with BigInt words.

import { CUBE_ROOTS, SQUARE_ROOTS } from "./constants.js";

const MASK = (1n << 64n) - 1n;

const rotate = (x, by) => ((x >> by) | (x << (64n - by))) & MASK;

export function sha512(data) {
  const padded = new Uint8Array((Math.floor((data.length + 16) / 128) + 1) * 128);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(data.length) * 8n);
  const sums = [...SQUARE_ROOTS];
  for (let at = 0; at < padded.length; at += 128) compressWide(sums, view, at);
  const digest = new DataView(new ArrayBuffer(64));
  sums.forEach((word, i) => {
    digest.setBigUint64(i * 8, word);
  });
  return new Uint8Array(digest.buffer);
}

function compressWide(sums, view, at) {
  const w = Array.from({ length: 16 }, (_, i) => view.getBigUint64(at + i * 8));
  for (let i = 16; i < 80; i++) {
    const s0 = rotate(w[i - 15], 1n) ^ rotate(w[i - 15], 8n) ^ (w[i - 15] >> 7n);
    const s1 = rotate(w[i - 2], 19n) ^ rotate(w[i - 2], 61n) ^ (w[i - 2] >> 6n);
    w.push((w[i - 16] + s0 + w[i - 7] + s1) & MASK);
  }
  let [a, b, c, d, e, f, g, h] = sums;
  for (let i = 0; i < 80; i++) {
    const s1 = rotate(e, 14n) ^ rotate(e, 18n) ^ rotate(e, 41n);
    const t1 = h + s1 + ((e & f) ^ (~e & MASK & g)) + CUBE_ROOTS[i] + w[i];
    const s0 = rotate(a, 28n) ^ rotate(a, 34n) ^ rotate(a, 39n);
    const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) & MASK, c, b, a, (t1 + t2) & MASK];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    sums[i] = (sums[i] + word) & MASK;
  });
}
