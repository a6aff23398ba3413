/** Masks values that may contain secrets: recognisable, but not usable. */

export const MASKED_VALUE = "********";
const SECRET_NAME =
  /pass|secret|token|authorization|api_?key|routing_?key|cookie|credential|private|signature/i;

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Masks everything but scheme and host: the path of a webhook often works as its password. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text)) return MASKED_VALUE;
  const url = new URL(text);
  return url.pathname === "/" && url.search === "" ? url.origin : `${url.origin}/${MASKED_VALUE}`;
}

/** Masks the password of a connection URL. */
export function maskConnection(text: string): string {
  if (!URL.canParse(text)) return MASKED_VALUE;
  const url = new URL(text);
  if (url.password !== "") url.password = MASKED_VALUE;
  for (const name of [...url.searchParams.keys()])
    if (isSecretName(name)) url.searchParams.set(name, MASKED_VALUE);
  return url.href;
}

/** Masks the values of secret-like names in a structure. */
export function maskNamed(value: unknown, name = ""): unknown {
  if (typeof value === "string") {
    if (isSecretName(name)) return MASKED_VALUE;
    return name === "url" ? maskUrl(value) : value;
  }
  if (Array.isArray(value)) return value.map((item) => maskNamed(item, name));
  if (value === null || typeof value !== "object")
    return isSecretName(name) && value !== null ? MASKED_VALUE : value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, maskNamed(member, key)]));
}

/** Masks all values of a mapping, such as headers or a child process's environment. */
export function maskValues(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.keys(value).map((key) => [key, MASKED_VALUE]));
}
