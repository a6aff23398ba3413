/**
 * Finds credentials on a command line: the value after `--password`, the password of `curl -u user:password`, and the
 * values of `sshpass -p` and `mysql -p`. `-u` and `-p` count only after the name of such a command.
 */
import { collectHits, type DetectorHit, trailingHit } from "./hits.ts";
import { isPlaceholder, secretName } from "./names.ts";

/** Every text that the patterns below match contains one of these. */
export const COMMAND_HINTS: readonly string[] = [" --", "\t--", " -u", " --user", " --proxy-user", " -p"];

const FLAG = /(?<![^\s"'`])--([A-Za-z][\w-]{2,60})[ \t]{1,8}["']?([^\s"'`;|&<>-][^\s"'`;|&<>]{3,255})/g;
const HTTP_USER =
  /\b(?:curl|wget|https?|xh)\b[^\n;|&]{0,400}?[ \t](?:-u|--user|--proxy-user)[ \t=]{0,4}["']?[^\s:"'`]{1,100}:([^\s"'`;|&]{1,255})/g;
const GIVEN =
  /\b(?:sshpass[ \t]+-p[ \t]*|(?:mysql|mysqldump|mariadb|mysqladmin)\b[^\n;|&]{0,400}?[ \t]-p)["']?([^\s"'`;|&-][^\s"'`;|&]{2,255})/g;

export function findOnCommandLine(text: string, hits: DetectorHit[]): void {
  collectHits(text, FLAG, hits, (match) => {
    const name = secretName(match[1]!);
    const value = match[2]!;
    if (name === undefined || isPlaceholder(value)) return undefined;
    // An ordinary word can follow a weak name such as `--token`.
    if (!name.strong && (value.length < 12 || !/\d/.test(value))) return undefined;
    const end = match.index + match[0].length;
    return { kind: name.kind, start: end - value.length, end };
  });
  for (const pattern of [HTTP_USER, GIVEN])
    collectHits(text, pattern, hits, (match) =>
      isPlaceholder(match[1]!) ? undefined : trailingHit("password", match),
    );
}
