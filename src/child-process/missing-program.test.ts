/** Programs that can be started, and words that name none. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../test/support/tmp.ts";
import { missingProgram } from "./missing-program.ts";

it("finds a program by its path or on PATH, and names one that is missing", () => {
  const folder = tempDir("programs");
  const program = join(folder, "undo");
  writeFileSync(program, "#!/bin/sh\n");
  expect(missingProgram(`'${program}' --now`)).toBe(program);
  chmodSync(program, 0o755);
  mkdirSync(join(folder, "directory"));
  expect([missingProgram(`'${program}' --now`), missingProgram("undo a", folder)]).toEqual([null, null]);
  expect(missingProgram("directory", folder)).toBe("directory");
  expect(missingProgram("no-such-program", `/nowhere:${folder}`)).toBe("no-such-program");
});
