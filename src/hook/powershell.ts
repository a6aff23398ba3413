/**
 * Handles commands for PowerShell and `cmd`, which are not parsed and always need approval. Protected paths and
 * deciding commands are still found, in spellings with backslashes, escape characters and home variables.
 */
import type { PathGuard } from "./path-guard.ts";
import { namesDecision } from "./shell/svc-command.ts";
import type { CommandLocation } from "./workspace/expand-home.ts";

const HOME_VARIABLE = /\$(?:env:)?(?:userprofile|home)\b|\$\{(?:env:)?(?:userprofile|home)\}|%userprofile%/gi;

export const POWERSHELL_PROGRAM = /^(?:pwsh|powershell|cmd)(?:\.exe)?$/i;

export function powershellViolations(
  command: string,
  { cwd, home }: CommandLocation,
  guard: PathGuard,
): string[] {
  // Escape characters do not change the name behind them.
  const plain = command.replace(/[`^]/g, "").replace(HOME_VARIABLE, () => home);
  const slashed = plain.replaceAll("\\", "/");
  const pieces = new Set(
    slashed.split(/[\s'"<>|;()&=,{}@]+/).flatMap((piece) => [piece, piece.replace(/^-\w+:/, "")]),
  );
  pieces.delete("");
  const found = [...pieces].map((piece) => guard.path(piece, cwd));
  found.push(guard.text(plain), guard.text(slashed), guard.text(slashed.toLowerCase()));
  if ([plain, slashed.toLowerCase()].some(namesDecision)) found.push("it names a deciding svc command");
  return [...new Set(found.filter((why) => why !== null))];
}
