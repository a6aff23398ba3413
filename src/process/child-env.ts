/**
 * What a child process gets to see of our environment. A command that undoes something is the user's own
 * program and may log what it finds; the service's secrets are none of its business.
 */
const ALLOWED: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "LANG",
  "TZ",
  "TMPDIR",
  "USER",
  "LOGNAME",
  "SHELL",
  "TERM",
]);

/**
 * `SVC_COMMAND_ENV` names further variables to hand on, separated by commas. Variables of the service
 * itself are never handed on, named or not: they hold keys, secrets and the database's address.
 */
export function childEnv(parent: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const named = new Set((parent["SVC_COMMAND_ENV"] ?? "").split(",").map((name) => name.trim()));
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(parent)) {
    if (value === undefined || name.toUpperCase().startsWith("SVC_")) continue;
    if (ALLOWED.has(name) || name.startsWith("LC_") || named.has(name)) env[name] = value;
  }
  return env;
}
