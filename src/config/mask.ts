/** How values that may hold secrets are shown: enough to recognise them, too little to use them. */

export const MASKED = "********";
const SECRET_NAME =
  /pass|secret|token|authorization|api_?key|routing_?key|cookie|credential|private|signature/i;

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** A webhook's path is often its password: only the scheme and the host are shown. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text)) return MASKED;
  const url = new URL(text);
  return url.pathname === "/" && url.search === "" ? url.origin : `${url.origin}/${MASKED}`;
}

/** A connection URL without its password. */
export function maskConnection(text: string): string {
  if (!URL.canParse(text)) return MASKED;
  const url = new URL(text);
  if (url.password !== "") url.password = MASKED;
  for (const name of [...url.searchParams.keys()]) if (isSecretName(name)) url.searchParams.set(name, MASKED);
  return url.href;
}

/** A structure whose secrets are known by their names. */
export function maskNamed(value: unknown, name = ""): unknown {
  if (typeof value === "string") {
    if (isSecretName(name)) return MASKED;
    return name === "url" ? maskUrl(value) : value;
  }
  if (Array.isArray(value)) return value.map((item) => maskNamed(item, name));
  if (value === null || typeof value !== "object")
    return isSecretName(name) && value !== null ? MASKED : value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, maskNamed(member, key)]));
}

/** A mapping of which every value is a secret (headers, a child's environment). */
export function maskValues(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.keys(value).map((key) => [key, MASKED]));
}
