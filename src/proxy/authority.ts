/**
 * The certificate authority of one proxy: its key is in memory alone, it is good for 24 hours, and its name constraints
 * hold it to the hosts that the proxy opens TLS for.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  NameConstraints,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from "@peculiar/asn1-x509";
import { LruMap } from "../kernel/lru.ts";

const LIFE_MS = 24 * 3_600_000;
/** Clocks of clients can be behind. */
const SLACK_MS = 5 * 60_000;
const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";
const LEAVES = 1_000;
/** A constraint to no name at all would allow every name. */
const NO_HOST = "none.svc.invalid";

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export class RunAuthority {
  /** The authority's own certificate, for clients to trust. */
  readonly pem: string;
  private readonly hosts: ReadonlySet<string>;
  private readonly key: KeyPair;
  private readonly leafKey: KeyPair;
  private readonly until_ms: number;
  private readonly leaves = new LruMap<string, SecureContext>(LEAVES);

  constructor(hosts: readonly string[], now_ms: number) {
    this.hosts = new Set(hosts);
    this.key = newKeyPair();
    this.leafKey = newKeyPair();
    this.until_ms = now_ms + LIFE_MS;
    this.pem = this.issue({
      name: "svc proxy, for this run alone",
      key: this.key,
      from_ms: now_ms - SLACK_MS,
      extensions: authorityExtensions(this.key, [...this.hosts]),
    });
  }

  /** Whether certificates for this host hold: the constraints name it, and the authority has not expired. */
  covers(host: string, now_ms: number): boolean {
    return this.hosts.has(host) && now_ms < this.until_ms;
  }

  contextFor(host: string, now_ms: number): SecureContext {
    let context = this.leaves.get(host);
    if (context === undefined) {
      const leaf = this.issue({
        name: "svc proxy",
        key: this.leafKey,
        from_ms: now_ms - SLACK_MS,
        extensions: leafExtensions(host, this.key, this.leafKey),
      });
      const key = this.leafKey.privateKey.export({ type: "pkcs8", format: "pem" });
      context = createSecureContext({ key, cert: leaf + this.pem, minVersion: "TLSv1.2" });
      this.leaves.set(host, context);
    }
    return context;
  }

  private issue(leaf: { name: string; key: KeyPair; from_ms: number; extensions: Extension[] }): string {
    const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
    const tbsCertificate = new TBSCertificate({
      version: Version.v3,
      serialNumber: serialNumber(),
      signature: algorithm,
      issuer: commonName("svc proxy, for this run alone"),
      validity: new Validity({ notBefore: new Date(leaf.from_ms), notAfter: new Date(this.until_ms) }),
      subject: commonName(leaf.name),
      subjectPublicKeyInfo: AsnConvert.parse(publicBytes(leaf.key), SubjectPublicKeyInfo),
      extensions: new Extensions(leaf.extensions),
    });
    const signed = sign("sha256", Buffer.from(AsnConvert.serialize(tbsCertificate)), this.key.privateKey);
    const certificate = new Certificate({
      tbsCertificate,
      signatureAlgorithm: algorithm,
      signatureValue: toArrayBuffer(signed),
    });
    return toPem(AsnConvert.serialize(certificate));
  }
}

function newKeyPair(): KeyPair {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function authorityExtensions(key: KeyPair, hosts: readonly string[]): Extension[] {
  return [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true),
    extension(id_ce_nameConstraints, constraintsTo(hosts), true),
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(key))),
  ];
}

/** Every kind of name is constrained: a kind that is not mentioned would be free. */
function constraintsTo(hosts: readonly string[]): NameConstraints {
  const names = hosts.filter((host) => isIP(host) === 0);
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  const subtree = (base: Partial<GeneralName>) => new GeneralSubtree({ base: new GeneralName(base) });
  const permitted = [
    ...(names.length > 0 ? names : [NO_HOST]).map((dNSName) => subtree({ dNSName })),
    ...addresses.map((host) => subtree({ iPAddress: `${host}/${isIP(host) === 4 ? 32 : 128}` })),
  ];
  const excluded =
    addresses.length > 0 ? [] : [subtree({ iPAddress: "0.0.0.0/0" }), subtree({ iPAddress: "::/0" })];
  return new NameConstraints({
    permittedSubtrees: new GeneralSubtrees(permitted),
    ...(excluded.length > 0 ? { excludedSubtrees: new GeneralSubtrees(excluded) } : {}),
  });
}

function leafExtensions(host: string, authority: KeyPair, leaf: KeyPair): Extension[] {
  const name = new GeneralName(isIP(host) === 0 ? { dNSName: host } : { iPAddress: host });
  return [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: false }), true),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
    extension(id_ce_subjectAltName, new SubjectAlternativeName([name])),
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(leaf))),
    extension(
      id_ce_authorityKeyIdentifier,
      new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyId(authority)) }),
    ),
  ];
}

function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function commonName(text: string): Name {
  const value = new AttributeValue({ utf8String: text });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

/** Positive, and never with a needless leading zero. */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return toArrayBuffer(bytes);
}

const publicBytes = ({ publicKey }: KeyPair): Buffer => publicKey.export({ type: "spki", format: "der" });

function keyId(key: KeyPair): ArrayBuffer {
  return toArrayBuffer(createHash("sha256").update(publicBytes(key)).digest().subarray(0, 20));
}

function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer as ArrayBuffer;
}

function toPem(der: ArrayBuffer): string {
  const lines = Buffer.from(der)
    .toString("base64")
    .match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
