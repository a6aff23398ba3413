/**
 * Environment variables for child processes. An undo command is the user's own program and may log its environment, so
 * the service's secrets stay out of it.
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
 * Returns the environment for a child process. `SVC_COMMAND_ENV` names further variables to pass, separated by commas.
 * Variables of the service itself hold keys, secrets and the database URL, so they never pass, even if named.
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
