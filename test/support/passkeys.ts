/** A soft authenticator: makes real WebAuthn registrations and assertions with node:crypto, and lies on request. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { canonicalOf } from "./canonical.ts";

export type SoftAlgorithm = "ES256" | "EdDSA" | "RS256";

/** What an assertion says instead of the truth. */
export interface AssertionLies {
  origin?: string;
  rp_id?: string;
  challenge?: string;
  counter?: number;
  flags?: number;
  type?: string;
  id?: string;
  key?: KeyObject;
  cross_origin?: boolean;
  /** Bytes after the counter, where extensions belong. */
  extension?: Uint8Array;
}

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest();
const b64 = (data: string | Uint8Array) => Buffer.from(data).toString("base64url");

type Cbor = number | string | Uint8Array | Map<number | string, Cbor>;

function cborHead(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 256) return Buffer.from([(major << 5) | 24, value]);
  return Buffer.from([(major << 5) | 25, value >> 8, value & 255]);
}

function cbor(value: Cbor): Buffer {
  if (typeof value === "number") return value < 0 ? cborHead(1, -1 - value) : cborHead(0, value);
  if (typeof value === "string")
    return Buffer.concat([cborHead(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Map)
    return Buffer.concat([cborHead(5, value.size), ...[...value].flatMap(([k, v]) => [cbor(k), cbor(v)])]);
  return Buffer.concat([cborHead(2, value.length), value]);
}

function keysFor(alg: SoftAlgorithm) {
  if (alg === "ES256") return generateKeyPairSync("ec", { namedCurve: "P-256" });
  if (alg === "EdDSA") return generateKeyPairSync("ed25519");
  return generateKeyPairSync("rsa", { modulusLength: 2048 });
}

export class SoftPasskey {
  readonly alg: SoftAlgorithm;
  readonly id: string = b64(randomBytes(32));
  readonly rp_id: string;
  readonly origin: string;
  readonly keys: { publicKey: KeyObject; privateKey: KeyObject };
  counter = 0;
  /** Some authenticators keep no counter. */
  readonly counts: boolean;

  constructor(origin: string, options: { alg?: SoftAlgorithm; rp_id?: string; counts?: boolean } = {}) {
    this.alg = options.alg ?? "ES256";
    this.origin = origin;
    this.rp_id = options.rp_id ?? new URL(origin).hostname;
    this.keys = keysFor(this.alg);
    this.counts = options.counts ?? true;
  }

  get spki(): Buffer {
    return this.keys.publicKey.export({ type: "spki", format: "der" });
  }

  get pem(): string {
    return this.keys.publicKey.export({ type: "spki", format: "pem" }).toString();
  }

  get code(): string {
    return sha256(this.spki).toString("hex").slice(0, 8);
  }

  /** An entry for `keys` of an approvers file. */
  entry(revoked = false) {
    return { id: this.id, public_key: this.spki.toString("base64"), alg: this.alg, revoked };
  }

  private cose(): Buffer {
    const jwk = this.keys.publicKey.export({ format: "jwk" });
    const bytes = (text?: string) => Buffer.from(text ?? "", "base64url");
    const members: Record<SoftAlgorithm, [number, Cbor][]> = {
      ES256: [
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, bytes(jwk.x)],
        [-3, bytes(jwk.y)],
      ],
      EdDSA: [
        [1, 1],
        [3, -8],
        [-1, 6],
        [-2, bytes(jwk.x)],
      ],
      RS256: [
        [1, 3],
        [3, -257],
        [-1, bytes(jwk.n)],
        [-2, bytes(jwk.e)],
      ],
    };
    return cbor(new Map<number | string, Cbor>(members[this.alg]));
  }

  private authData(lies: AssertionLies, flags: number, more: Uint8Array = Buffer.alloc(0)): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(lies.counter ?? this.counter);
    return Buffer.concat([
      sha256(lies.rp_id ?? this.rp_id),
      Buffer.from([lies.flags ?? flags]),
      counter,
      more,
    ]);
  }

  private clientData(type: string, challenge: string, lies: AssertionLies): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: lies.type ?? type,
        challenge: lies.challenge ?? challenge,
        origin: lies.origin ?? this.origin,
        crossOrigin: lies.cross_origin ?? false,
      }),
    );
  }

  /** The answer to `navigator.credentials.create`. */
  create(options: { challenge: string }, lies: AssertionLies & { fmt?: string } = {}) {
    const raw = Buffer.from(this.id, "base64url");
    const length = Buffer.from([raw.length >> 8, raw.length & 255]);
    const attested = Buffer.concat([Buffer.alloc(16), length, raw, this.cose()]);
    const attestation = cbor(
      new Map<number | string, Cbor>([
        ["fmt", lies.fmt ?? "none"],
        ["attStmt", new Map()],
        ["authData", this.authData(lies, 0x45, attested)],
      ]),
    );
    return {
      id: this.id,
      rawId: this.id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON: b64(this.clientData("webauthn.create", options.challenge, lies)),
        attestationObject: b64(attestation),
        transports: ["internal"],
      },
    };
  }

  /** The answer to `navigator.credentials.get`. */
  assert(challenge: string, lies: AssertionLies = {}) {
    if (this.counts) this.counter++;
    const authenticatorData = this.authData(lies, 0x05, lies.extension);
    const clientDataJSON = this.clientData("webauthn.get", challenge, lies);
    const signed = Buffer.concat([authenticatorData, sha256(clientDataJSON)]);
    const key = lies.key ?? this.keys.privateKey;
    const signature = sign(key.asymmetricKeyType === "ed25519" ? null : "sha256", signed, key);
    const id = lies.id ?? this.id;
    return {
      id,
      rawId: id,
      type: "public-key" as const,
      clientExtensionResults: {},
      response: {
        clientDataJSON: b64(clientDataJSON),
        authenticatorData: b64(authenticatorData),
        signature: b64(signature),
      },
    };
  }

  /** Signs what the server asked for. */
  sign<P extends object>({ payload }: { payload: P }, lies: AssertionLies = {}) {
    return { payload, assertion: this.assert(b64(sha256(canonicalOf(payload))), lies) };
  }
}
