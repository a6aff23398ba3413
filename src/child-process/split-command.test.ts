import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { splitCommand } from "./split-command.ts";

describe("splitCommand", () => {
  it.each([
    ["node undo.mjs", ["node", "undo.mjs"]],
    ["  a\t b\n c ", ["a", "b", "c"]],
    ["a 'b c' d", ["a", "b c", "d"]],
    [`a "b c" d`, ["a", "b c", "d"]],
    [`a b'c d'e"f g"h`, ["a", "bc def gh"]],
    ["a '' \"\"", ["a", "", ""]],
    ["a b\\ c \\'d", ["a", "b c", "'d"]],
    [`a 'no \\escape "here"'`, ["a", 'no \\escape "here"']],
    [`a "\\"quoted\\" \\$HOME \\\\ \\n"`, ["a", '"quoted" $HOME \\ \\n']],
    ["a $HOME *.ts ~ `x`", ["a", "$HOME", "*.ts", "~", "`x`"]],
    ["a b|c > d; e & f", ["a", "b|c", ">", "d;", "e", "&", "f"]],
    ["sh -c 'echo \"$1\" | cat'", ["sh", "-c", 'echo "$1" | cat']],
    ["node -e process.exit(0)", ["node", "-e", "process.exit(0)"]],
    ["a \\\n b", ["a", "b"]],
    ['a "b\\\nc"', ["a", "bc"]],
  ])(
    `splits %j into words without expanding anything ${verifies("contract.readings.no-shell")}`,
    (command, words) => {
      expect(splitCommand(command)).toEqual(words);
    },
  );

  it.each([["a 'b"], ['a "b'], ["a \\"], [""], ["   "], ["''"], ["a \0b"]])("refuses %j", (command) => {
    expect(() => splitCommand(command, "--compensator-cmd")).toThrow(/^--compensator-cmd: /);
  });
});
