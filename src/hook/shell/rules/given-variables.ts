/**
 * Which variables a program may get from its command. Programs take other programs, files, options and addresses from
 * variables, so a variable passes only by a known name, or with a value that cannot be one of these.
 */
import type { ShellWord } from "../command-parts.ts";
import { isControlVariable } from "../programs.ts";
import { hasOpenText } from "../word-rules.ts";

/** Values of a terminal, of a test run, or of the project itself. */
const KNOWN =
  /^(?:CI|DEBUG|VERBOSE|V|NODE_ENV|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|COLUMNS|LINES|FORCE_COLOR|NO_COLOR|CLICOLOR\w*|RUST_LOG|RUST_BACKTRACE|CARGO_TERM_\w+|CGO_ENABLED|GOOS|GOARCH|(?:VITE|NEXT_PUBLIC|REACT_APP|EXPO_PUBLIC|NUXT_PUBLIC)_\w+)$/;

/** Names of programs, files, options and addresses. */
const NAMES_MORE =
  /(?:^|_|(?<=[A-Z]))(?:BIN|BINARY|CMD|COMMAND|EXE|EXEC|EXECUTABLE|PROGRAM|DIR|PATH|HOME|ROOT|CONFIG|CONF|RC|RCFILE|OPTS?|OPTIONS?|ARGS?|FILE|OUT|OUTPUT|OUTPUTS|PROXY|REGISTRY|MIRROR|WRAPPER|LAUNCHER|PREFIX|PRELOAD|INIT|PLUGINS?|LIBS?|LIBRARY|REQUIRE|SCRIPT|HOOKS?|COMPILER|LINKER|RUNNER|ENDPOINT|CONNECT)$/i;

/** Not an option, a path, an address or a list of words. */
const INERT_VALUE = /^(?!-)[\w.,:@%+*-]*$/;
/** A service of this machine, as tests use. */
const LOOPBACK_VALUE =
  /^[\w+]+:\/\/(?:[\w.%-]+(?::[\w.%-]*)?@)?(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/[\w.-]*)*(?:\?[\w=&.-]*)?$/;
const ADDRESS_NAME = /_(?:URL|URI|DSN)$/;

/** Make uses its environment as variables, and those name programs. */
const TAKES_ALL = /^g?make$/;

/** Whether one of these assignments could lead the program to something else. A word without a value was assigned before. */
export function leadsElsewhere(words: readonly ShellWord[], program: string): boolean {
  return words.some((word) => {
    const end = word.text.indexOf("=");
    const name = end < 0 ? word.text : word.text.slice(0, end);
    if (isControlVariable(name)) return true;
    if (KNOWN.test(name)) return false;
    if (end < 0 || hasOpenText(word) || TAKES_ALL.test(program)) return true;
    const value = word.text.slice(end + 1);
    if (ADDRESS_NAME.test(name) && LOOPBACK_VALUE.test(value)) return false;
    return NAMES_MORE.test(name) || !INERT_VALUE.test(value);
  });
}
