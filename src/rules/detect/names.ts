/**
 * Decides whether a field's name means a secret, and whether a value is obviously not one: a placeholder, a reference
 * to a secret, or code that fetches one.
 */

/**
 * Meaning of a name. A strong name such as `password` always holds a secret; a weak one such as `token` can hold a
 * word.
 */
export interface SecretName {
  readonly kind: string;
  readonly strong: boolean;
}

const STRONG: Record<string, string> = {
  password: "password",
  passwd: "password",
  passwort: "password",
  pwd: "password",
  passphrase: "password",
  passcode: "password",
  secret: "secret",
  clientsecret: "secret",
  secretkey: "secret",
  signingsecret: "secret",
};
const WEAK: Record<string, string> = {
  token: "token",
  authtoken: "token",
  accesstoken: "token",
  refreshtoken: "token",
  bearer: "token",
  apikey: "api_key",
  accesskey: "api_key",
  authkey: "api_key",
  licensekey: "api_key",
  privatekey: "private_key",
  signingkey: "private_key",
  encryptionkey: "private_key",
  masterkey: "private_key",
  credential: "credential",
  credentials: "credential",
  authorization: "credential",
  auth: "credential",
  pin: "credential",
};
/** Words that make a following `token` harmless: it is a position in a list or a unit of text. */
const HARMLESS_BEFORE = new Set(
  "page next continuation cursor sync csrf xsrf stop eos bos pad unk special design prev previous max min num".split(
    " ",
  ),
);
/** Suffixes that do not change the meaning of a name. */
const IGNORED_AFTER = new Set(
  "prod production dev development test staging old new value plain text b64 base64 env".split(" "),
);

/** Splits a name: `dbPassword_PROD` gives db, password, prod. */
function words(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .map((word) => word.replace(/(?<!\d)\d+$/, ""))
    .filter((word) => word !== "");
}

/** Cache of the last name. Every value in a list is looked up under the list's name. */
let last: { name: string; meaning: SecretName | undefined } = { name: "", meaning: undefined };

export function secretName(name: string): SecretName | undefined {
  if (name.length > 128) return undefined;
  if (last.name !== name) last = { name, meaning: meaningOf(name) };
  return last.meaning;
}

function meaningOf(name: string): SecretName | undefined {
  const parts = words(name);
  while (parts.length > 1 && IGNORED_AFTER.has(parts[parts.length - 1]!)) parts.pop();
  const last = parts[parts.length - 1];
  if (last === undefined) return undefined;
  const before = parts[parts.length - 2];
  const pair = before === undefined ? last : before + last;
  for (const key of [pair, last]) {
    if (Object.hasOwn(STRONG, key)) return { kind: STRONG[key]!, strong: true };
    if (Object.hasOwn(WEAK, key)) {
      if (before !== undefined && HARMLESS_BEFORE.has(before)) return undefined;
      return { kind: WEAK[key]!, strong: false };
    }
  }
  // `aws_secret_access_key` and `dbpassword` name secrets although their last word alone does not.
  if (/(?:password|passwd|passphrase|apikey|secretkey)$/.test(last)) {
    return last.endsWith("apikey") ? { kind: "api_key", strong: false } : { kind: "password", strong: true };
  }
  return undefined;
}

const FILLER = /^[*•.x#?_\-=\s]{2,}$|^(.)\1{3,}$/i;
const REFERENCE =
  /^(?:<|\$|\{|%[({sA-Z]|!|@|&|\[(?:REDACTED|PII|FILTERED|MASKED|HIDDEN)|(?:https?|file|vault|op|ssm|gcp|aws|azure|env|arn|ref|secret|doppler|keychain|sops|enc)[:]|process\.env|os\.(?:environ|getenv)|env[.[(]|import\.meta|secrets?[.[]|vars?[.[]|config[.[]|projects\/|~?\.{0,2}\/)/i;
const SAYS_SO =
  /your|example|placeholder|change.?me|redacted|dummy|sample|insert|replace|to.?do|fixme|xxxx|\*\*\*|\.\.\.|…|<[^<>]*>|\{\{|not.?set|none.?given|goes.?here|fake|mock|_here$/i;
const WORDS = new Set(
  (
    "string text str required optional hidden none null nil undefined true false yes no default empty missing unknown invalid " +
    "expired valid enabled disabled number boolean object any password passwd passwort secret token username user admin value " +
    "varchar input prompt manual basic bearer digest oauth oauth2 saml ldap local forgot reset show confirm current " +
    "incorrect wrong encrypted hashed masked protected private public field label"
  ).split(" "),
);
const ENVIRONMENT_NAME = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;
const CODE = /^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+$|\(\)|=>|::/;

/** True if the value is a placeholder for a secret. */
export function isPlaceholder(value: string): boolean {
  const text = value.slice(0, 300);
  if (FILLER.test(text) || REFERENCE.test(text) || SAYS_SO.test(text)) return true;
  if (WORDS.has(text.toLowerCase()) || ENVIRONMENT_NAME.test(text)) return true;
  return CODE.test(text);
}

const LOGGED =
  /password|passwd|pwd|passphrase|secret|token|authorization|api[_-]?key|cookie|credential|private[_-]?key|signature/i;

/** True for fields that logs must not show, regardless of their value. */
export function isLoggedSecretName(name: string): boolean {
  return LOGGED.test(name);
}
