/**
 * Commands of PowerShell and `cmd`, which are not read word by word: they always ask. Paths and decisions in them are
 * found by their own spelling, with backslashes, other escapes and their variables for the home folder.
 */
import type { Guard } from "./guard.ts";
import type { Place } from "./homes.ts";
import { namesDecision } from "./shell/svc-command.ts";

const HOME_VARIABLE = /\$(?:env:)?(?:userprofile|home)\b|\$\{(?:env:)?(?:userprofile|home)\}|%userprofile%/gi;

export const POWERSHELL = /^(?:pwsh|powershell|cmd)(?:\.exe)?$/i;

export function powershellTouches(command: string, { cwd, home }: Place, guard: Guard): string[] {
  // Its escape characters take nothing away from a name.
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
