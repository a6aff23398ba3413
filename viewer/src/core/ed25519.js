// Ed25519 verification (RFC 8032). The browser's own is used where it has one; otherwise the BigInt one below.
// Both come after the same strict checks: S below the group order, and a key that is the canonical encoding of a
// point that is not of small order, since such a "key" accepts signatures nobody made.

import { sha512 } from "./sha512.js";

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const D = modulo(-121665n * inverse(121666n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);
// Extended coordinates [X, Y, Z, T] with x = X/Z, y = Y/Z, xy = T/Z: no division until the end.
const NEUTRAL = [0n, 1n, 1n, 0n];
const BASE_POINT = decodePoint(toLittleEndian(modulo(4n * inverse(5n))));

function modulo(n) {
  const rest = n % P;
  return rest < 0n ? rest + P : rest;
}

function power(base, exponent) {
  let result = 1n;
  let square = modulo(base);
  for (let bits = exponent; bits > 0n; bits >>= 1n) {
    if (bits & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

function inverse(n) {
  return power(n, P - 2n);
}

function readLittleEndian(bytes) {
  let number = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) number = (number << 8n) | BigInt(bytes[i]);
  return number;
}

function toLittleEndian(number) {
  const bytes = new Uint8Array(32);
  for (let i = 0, rest = number; i < 32; i++, rest >>= 8n) bytes[i] = Number(rest & 255n);
  return bytes;
}

function addPoints([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = modulo((y1 - x1) * (y2 - x2));
  const b = modulo((y1 + x1) * (y2 + x2));
  const c = modulo(2n * t1 * t2 * D);
  const d = modulo(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [modulo(e * f), modulo(g * h), modulo(f * g), modulo(e * h)];
}

function multiplyPoint(scalar, point) {
  let result = NEUTRAL;
  let doubled = point;
  for (let bits = scalar; bits > 0n; bits >>= 1n) {
    if (bits & 1n) result = addPoints(result, doubled);
    doubled = addPoints(doubled, doubled);
  }
  return result;
}

/** The point that 32 bytes encode, or null where they are no canonical encoding of one. */
function decodePoint(bytes) {
  const number = readLittleEndian(bytes);
  const sign = number >> 255n;
  const y = number & ((1n << 255n) - 1n);
  if (y >= P) return null;
  const u = modulo(y * y - 1n);
  const v = modulo(D * y * y + 1n);
  let x = modulo(u * v ** 3n * power(u * v ** 7n, (P - 5n) / 8n));
  const square = modulo(v * x * x);
  if (square === modulo(-u)) x = modulo(x * ROOT_OF_MINUS_ONE);
  else if (square !== u) return null;
  if (x === 0n && sign === 1n) return null;
  if ((x & 1n) !== sign) x = P - x;
  return [x, y, 1n, modulo(x * y)];
}

function encodePoint([x, y, z]) {
  const scale = inverse(z);
  return toLittleEndian(modulo(y * scale) | ((modulo(x * scale) & 1n) << 255n));
}

/** The point of a key that can be somebody's, else null. */
export function keyPoint(raw) {
  const point = raw.length === 32 ? decodePoint(raw) : null;
  if (point === null) return null;
  const [x, y, z] = multiplyPoint(8n, point);
  return x === 0n && y === z ? null : point;
}

function plainVerify(point, raw, message, signature) {
  const input = new Uint8Array(64 + message.length);
  input.set(signature.subarray(0, 32));
  input.set(raw, 32);
  input.set(message, 64);
  const challenge = readLittleEndian(sha512(input)) % ORDER;
  const negated = [modulo(-point[0]), point[1], point[2], modulo(-point[3])];
  const s = readLittleEndian(signature.subarray(32));
  const expected = encodePoint(addPoints(multiplyPoint(s, BASE_POINT), multiplyPoint(challenge, negated)));
  return expected.every((byte, i) => byte === signature[i]);
}

async function nativeVerify(raw, message, signature) {
  const key = await crypto.subtle.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, key, signature, message);
}

/** Whether `signature` over `message` was made with the private half of `raw`. */
export async function verifyEd25519(raw, message, signature, { native = true } = {}) {
  const point = keyPoint(raw);
  if (point === null || signature.length !== 64 || readLittleEndian(signature.subarray(32)) >= ORDER)
    return false;
  if (native) {
    try {
      return await nativeVerify(raw, message, signature);
    } catch {
      // This browser has no Ed25519, or none for pages opened from disk: the plain one gives the same answer.
    }
  }
  return plainVerify(point, raw, message, signature);
}
