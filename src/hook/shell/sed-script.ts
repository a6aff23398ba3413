/**
 * Recognizes sed scripts that only change their output. All others (files, programs, unsupported forms) are unknown.
 */

const ADDRESS = /^(?:\d+(?:~\d+)?|\$|\/(?:\\.|\[[^\]\n]*\]|[^/\\[\n])*\/[IM]*)/;
const PLAIN_COMMAND = /^[pdqQ=nNDPhHgGxlzF]/;
const QUIT = /^[qQl] *\d*/;
/** Commands whose rest of the line is text or a label. */
const LINE_COMMAND = /^(?:[aic]\\?[^\n]*|[btT:] *[\w-]*)/;

export function isPlainSed(script: string): boolean {
  let rest = script;
  for (;;) {
    rest = rest.replace(/^[\s;{}]+/, "");
    if (rest === "") return true;
    if (rest.startsWith("#")) {
      rest = rest.replace(/^[^\n]*/, "");
      continue;
    }
    const next = afterCommand(afterAddresses(rest));
    if (next === null || !/^\s*(?:$|[;}\n])/.test(next)) return false;
    rest = next;
  }
}

function afterAddresses(script: string): string {
  let rest = script.replace(ADDRESS, "");
  if (rest === script) return rest;
  const second = /^\s*,\s*/.exec(rest);
  if (second !== null)
    rest = rest
      .slice(second[0].length)
      .replace(/^[+~]\d+/, "")
      .replace(ADDRESS, "");
  return rest.replace(/^[\s!]+/, "");
}

/** The script after its first command. Null if that command may do more than print. */
function afterCommand(script: string): string | null {
  // The commands of a block are parsed too.
  if (script === "" || /^[{};]/.test(script)) return script.replace(/^\{/, ";");
  if (/^[sy]/.test(script)) return afterSubstitution(script);
  const quit = QUIT.exec(script)?.[0];
  if (quit !== undefined) return script.slice(quit.length);
  if (PLAIN_COMMAND.test(script)) return script.slice(1);
  const line = LINE_COMMAND.exec(script)?.[0];
  return line === undefined ? null : script.slice(line.length);
}

/**
 * The script after `s/a/b/flags`, with any delimiter. Rejects the flags `e` (runs a program) and `w` (writes a file).
 */
function afterSubstitution(script: string): string | null {
  const mark = script[1];
  if (mark === undefined || /[\s\\]/.test(mark)) return null;
  let at = 2;
  for (let marks = 0; marks < 2; at++) {
    if (at >= script.length) return null;
    if (script[at] === "\\") at++;
    else if (script[at] === mark) marks++;
  }
  // Some versions of sed end a part inside brackets, and others do not.
  const parts = script.slice(2, at);
  if (parts.lastIndexOf("[") > parts.lastIndexOf("]")) return null;
  const flags = /^[gpiImM\d]*/.exec(script.slice(at))![0];
  return script.slice(at + flags.length);
}
