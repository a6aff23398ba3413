import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { askBroker } from "../../support/broker.ts";
import { ROOT } from "../../support/files.ts";
import { verifies } from "../../support/verifies.ts";

const HERE = await askBroker("frameworks");

it("gives governed tools the types of the frameworks' own", async () => {
  verifies("beyond.adapter.types");
  const tsc = [join(ROOT, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", HERE];
  const { stdout } = await promisify(execFile)(process.execPath, tsc).catch((error) => error);
  expect(stdout).toBe("");
});
