/** One case of every adapter under a newer Node, with the newest of its framework; `npm run frameworks` runs them all. */
import { execFile } from "node:child_process";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { askBroker } from "../../support/broker.ts";
import { ROOT } from "../../support/files.ts";
import { verifies } from "../../support/verifies.ts";

await askBroker("frameworks");

it("works with the newest of every framework under a newer Node", async () => {
  verifies("beyond.adapter.newest");
  const cases = "carries out what is allowed|before a call is executed";
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [join(ROOT, "scripts/newest.mjs"), "--reporter=json", "-t", cases],
    { env: { PATH: process.env["PATH"] }, maxBuffer: 2 ** 26 },
  );
  expect(stderr).toMatch(/svc: Node v2[4-9].* ai 7\..* langchain 1\./);
  const { testResults } = JSON.parse(stdout) as {
    testResults: { name: string; assertionResults: { status: string }[] }[];
  };
  const ran = testResults.filter(({ assertionResults }) =>
    assertionResults.some(({ status }) => status === "passed"),
  );
  expect(ran.map(({ name }) => basename(name, ".test.ts")).toSorted()).toEqual([
    "ai-sdk",
    "ai-sdk-7",
    "claude-agent-sdk",
    "langchain",
    "mastra",
    "openai-agents",
  ]);
});
