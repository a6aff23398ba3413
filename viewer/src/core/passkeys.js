// Passkey signatures (WebAuthn assertions): ES256, EdDSA and RS256. A key and a signature have one accepted spelling.
// Without the browser's own cryptography ES256 and RS256 cannot be checked, and nothing passes unchecked.

import { verifyEd25519 } from "./ed25519.js";
import { Finding } from "./finding.js";
import { canonical, decodeText } from "./json.js";
import { strictBase64 } from "./keys.js";
import { fromHex, sha256, toHex } from "./sha256.js";

const ED25519_SPKI = "302a300506032b6570032100";
const P256_SPKI = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
const RSA_ALGORITHM = "300d06092a864886f70d0101010500";
const ORIGIN = /^https?:\/\/([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]{1,5})?$/;
const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const passkeyText = new TextEncoder();

/** Bytes of the one base64url spelling, else null. */
export function strictBase64url(text) {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null;
  const plain = text.replaceAll("-", "+").replaceAll("_", "/");
  return strictBase64(plain.padEnd(Math.ceil(plain.length / 4) * 4, "="));
}

function toBase64url(bytes) {
  const plain = btoa(String.fromCharCode(...bytes));
  return plain
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/={1,2}$/, "");
}

/**
 * Why the assertion does not sign the payload; null if it does. `place` names the relying party and the origins; without
 * it every relying party that the origin permits will do.
 */
export async function assertionProblem({ payload, assertion, public_key, alg }, place, native) {
  if (assertion.id !== assertion.rawId) return "it names two passkeys";
  const { clientDataJSON, authenticatorData, signature } = assertion.response;
  const clientData = strictBase64url(clientDataJSON);
  const client = readClient(clientData);
  if (client === null) return "its client data is not that of an assertion";
  if (client.challenge !== toBase64url(sha256(passkeyText.encode(canonical(payload)))))
    return "it signs another payload";
  if (client.crossOrigin === true) return "it was made in another site's frame";
  const host = typeof client.origin === "string" ? ORIGIN.exec(client.origin)?.[1] : undefined;
  if (host === undefined || (place !== null && !place.origins.includes(client.origin)))
    return "it was not made at a known origin";
  const labels = host.split(".");
  const parties = place === null ? labels.map((_, i) => labels.slice(i).join(".")) : [place.rp_id];
  const data = strictBase64url(authenticatorData);
  const party = toHex(data.slice(0, 32));
  if (!parties.some((one) => toHex(sha256(passkeyText.encode(one))) === party))
    return "it was made for another relying party";
  if (data.length < 37 || ((data[32] & 0xc0) === 0 && data.length !== 37))
    return "its authenticator data is damaged";
  if ((data[32] & USER_PRESENT) === 0 || (data[32] & USER_VERIFIED) === 0)
    return "the person was not verified";
  const signed = new Uint8Array([...data, ...sha256(clientData)]);
  const holds = await verifyPasskey({ public_key, alg }, signed, strictBase64url(signature), native);
  return holds ? null : "the signature is wrong";
}

function readClient(bytes) {
  try {
    const client = JSON.parse(decodeText(bytes));
    return client !== null && typeof client === "object" && client.type === "webauthn.get" ? client : null;
  } catch {
    return null;
  }
}

async function verifyPasskey({ public_key, alg }, message, signature, native) {
  const spki = strictBase64(public_key);
  if (spki === null) return false;
  const hex = toHex(spki);
  if (alg === "EdDSA")
    return hex.startsWith(ED25519_SPKI) && verifyEd25519(spki.slice(12), message, signature, { native });
  if (globalThis.crypto?.subtle === undefined)
    throw new Finding(
      "has a signature that this browser cannot check; use a newer browser, or svc verify-bundle",
    );
  try {
    if (alg === "RS256") return isUsualRsa(spki) && (await verifyRsa(spki, message, signature));
    const isPoint = hex.startsWith(P256_SPKI) && spki.length === 91 && spki[26] === 4;
    const numbers = isPoint ? readDer(signature) : null;
    return numbers !== null && (await verifyP256(spki, message, numbers));
  } catch {
    return false;
  }
}

async function verifyP256(spki, message, numbers) {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const key = await crypto.subtle.importKey("spki", spki, algorithm, false, ["verify"]);
  return crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, numbers, message);
}

async function verifyRsa(spki, message, signature) {
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("spki", spki, algorithm, false, ["verify"]);
  return crypto.subtle.verify(algorithm, key, signature, message);
}

/** The two numbers of a DER signature in 64 bytes; null where it is not the one spelling of two positive numbers. */
function readDer(der) {
  if (der.length < 8 || der[0] !== 0x30 || der[1] !== der.length - 2) return null;
  const numbers = new Uint8Array(64);
  let at = 2;
  for (const end of [32, 64]) {
    const length = der[at + 1];
    const data = der.slice(at + 2, at + 2 + length);
    const isShort = der[at] !== 2 || data.length !== length || length === 0 || data[0] > 0x7f;
    if (isShort || (length > 1 && data[0] === 0 && data[1] < 0x80)) return null;
    const digits = data[0] === 0 ? data.slice(1) : data;
    if (digits.length > 32) return null;
    numbers.set(digits, end - digits.length);
    at += 2 + length;
  }
  return at === der.length ? numbers : null;
}

/** `{content, rest}` of the DER element at the start; null where there is no such element. */
function derElement(data, tag) {
  if (data.length < 2 || data[0] !== tag) return null;
  let [length, at] = [data[1], 2];
  if (length >= 0x80) {
    const count = length & 0x7f;
    if (count < 1 || count > 2 || data.length < 2 + count || data[2] === 0) return null;
    length = count === 1 ? data[2] : data[2] * 256 + data[3];
    at = 2 + count;
    if (length < 0x80) return null;
  }
  return at + length <= data.length
    ? { content: data.slice(at, at + length), rest: data.slice(at + length) }
    : null;
}

function positiveNumber(data) {
  const found = derElement(data, 2);
  if (found === null || found.content.length === 0 || found.content[0] > 0x7f) return null;
  const { content, rest } = found;
  if (content.length > 1 && content[0] === 0 && content[1] < 0x80) return null;
  return { digits: content[0] === 0 ? content.slice(1) : content, rest };
}

/** Whether the key is in its one spelling, with 2048 to 8192 bits and an odd exponent above 1. */
function isUsualRsa(spki) {
  const outer = derElement(spki, 0x30);
  const algorithm = fromHex(RSA_ALGORITHM);
  if (outer === null || outer.rest.length > 0 || !algorithm.every((byte, i) => outer.content[i] === byte))
    return false;
  const bits = derElement(outer.content.slice(algorithm.length), 3);
  if (bits === null || bits.rest.length > 0 || bits.content[0] !== 0) return false;
  const inner = derElement(bits.content.slice(1), 0x30);
  if (inner === null || inner.rest.length > 0) return false;
  const n = positiveNumber(inner.content);
  const e = n === null ? null : positiveNumber(n.rest);
  if (e === null || e.rest.length > 0) return false;
  const { digits } = e;
  const isOdd = digits.length > 0 && digits.length <= 8 && (digits.at(-1) & 1) === 1;
  return (
    n.digits.length >= 256 && n.digits.length <= 1_024 && isOdd && !(digits.length === 1 && digits[0] === 1)
  );
}
