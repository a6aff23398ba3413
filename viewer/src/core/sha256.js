// SHA-256 (FIPS 180-4), synchronous. WebCrypto answers through a promise for every hash, which for a million
// short records costs far more than the hashing itself; this one runs in place and allocates only its result.

import { CUBE_ROOTS, SQUARE_ROOTS } from "./constants.js";

const K = Int32Array.from(CUBE_ROOTS.slice(0, 64), upperHalf);
const START = Int32Array.from(SQUARE_ROOTS, upperHalf);
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

const state = new Int32Array(8);
const schedule = new Int32Array(64);
const tail = new Uint8Array(128);

function upperHalf(word) {
  return Number(word >> 32n) | 0;
}

/** The digest of `data` as 32 bytes. */
export function sha256(data) {
  state.set(START);
  const whole = data.length & ~63;
  for (let at = 0; at < whole; at += 64) compress(data, at);
  const rest = data.length - whole;
  tail.fill(0);
  tail.set(data.subarray(whole));
  tail[rest] = 0x80;
  const end = rest < 56 ? 64 : 128;
  // The length in bits, as 64 of them; a file's length stays far below 2^53.
  writeWord(tail, end - 8, Math.floor(data.length / 2 ** 29));
  writeWord(tail, end - 4, data.length << 3);
  for (let at = 0; at < end; at += 64) compress(tail, at);
  const digest = new Uint8Array(32);
  for (let i = 0; i < 8; i++) writeWord(digest, i * 4, state[i]);
  return digest;
}

function writeWord(bytes, at, word) {
  bytes[at] = word >>> 24;
  bytes[at + 1] = word >>> 16;
  bytes[at + 2] = word >>> 8;
  bytes[at + 3] = word;
}

function compress(bytes, offset) {
  const w = schedule;
  for (let i = 0, at = offset; i < 16; i++, at += 4) {
    w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  }
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15];
    const y = w[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
  }
  let a = state[0];
  let b = state[1];
  let c = state[2];
  let d = state[3];
  let e = state[4];
  let f = state[5];
  let g = state[6];
  let h = state[7];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + (g ^ (e & (f ^ g))) + K[i] + w[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

export function toHex(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i]];
  return text;
}

/** Bytes of a hex text whose form has already been checked. */
export function fromHex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(i * 2, i * 2 + 2), 16);
  return bytes;
}
