import { describe, expect, it } from "vitest";
import { tempFile } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import { compensatorCommand, readerCommand, verifyCommand } from "./rollback-commands.ts";

const signal = new AbortController().signal;
const call = {
  run_id: "r",
  step: 1,
  tool: "crm.delete",
  original_tool: "crm.create",
  args: { id: 'it\'s "7"' },
  idempotency_key: "k",
};
const script = (body: string): string => `'${process.execPath}' ${tempFile("cmd.mjs", body)}`;
const READ_STDIN = `let text = ""; for await (const chunk of process.stdin) text += chunk; const given = JSON.parse(text);`;

describe("the commands of a rollback", () => {
  it(`give the compensator the call on stdin ${verifies("core.rollback.call-json", "core.rollback.cli-stdin")}`, async () => {
    const keys = "run_id,step,tool,original_tool,args,idempotency_key";
    const check = script(
      `${READ_STDIN} process.exit(Object.keys(given).join() === "${keys}" && given.args.id === "it's \\"7\\"" ? 0 : 9)`,
    );
    await expect(compensatorCommand(check)(call, signal)).resolves.toBeUndefined();
  });

  it("take exit 0 as success with any output, and anything else as failure", async () => {
    await expect(
      compensatorCommand(script(`console.log("all gone, not JSON")`))(call, signal),
    ).resolves.toBeUndefined();
    await expect(
      compensatorCommand(script(`console.error("no such id"); process.exit(4)`))(call, signal),
    ).rejects.toThrow("the compensator command exited with code 4: no such id");
    await expect(compensatorCommand("/nowhere/undo")(call, signal)).rejects.toThrow(
      "could not be started (ENOENT)",
    );
    await expect(
      compensatorCommand(script("process.kill(process.pid, 'SIGKILL')"))(call, signal),
    ).rejects.toThrow("was ended by SIGKILL");
  });

  it("fail at the deadline and on a flood", async () => {
    const slow = compensatorCommand(script("setInterval(() => {}, 1000)"), { timeout_ms: 400 });
    await expect(slow(call, signal)).rejects.toThrow("did not end within 400ms");
    const flood = script(
      "process.stdout.on('error', () => {}); for (let i = 0; i < 200; i++) process.stdout.write('x'.repeat(65536))",
    );
    await expect(compensatorCommand(flood)(call, signal)).rejects.toThrow("printed more than 1048576 bytes");
  });

  it(`read JSON back, and refuse anything else as a read ${verifies("core.rollback.reader-cmd-input", "core.rollback.reader-cmd-output", "core.rollback.reader-cmd-exit", "core.rollback.reader-cmd-not-json")}`, async () => {
    const request = { tool: "crm.get", arguments: { id: 7 } };
    const echo = readerCommand(script(`${READ_STDIN} console.log(JSON.stringify(given))`));
    expect(await echo(request, signal)).toEqual(request);
    await expect(
      readerCommand(script(`console.log('{"a":1}'); process.exit(1)`))(request, signal),
    ).rejects.toThrow("exited with code 1");
    for (const output of ["", "not json", '{"a":1} trailing']) {
      await expect(
        readerCommand(script(`process.stdout.write(${JSON.stringify(output)})`))(request, signal),
      ).rejects.toThrow(/JSON/);
    }
  });

  it(`confirm by exit 0 ${verifies("core.rollback.verify-cmd-input", "core.rollback.verify-cmd-exit-0", "core.rollback.verify-cmd-fails")}`, async () => {
    const check = verifyCommand(script(`${READ_STDIN} process.exit(given.idempotency_key === "k" ? 0 : 1)`));
    await expect(check(call, signal)).resolves.toBeUndefined();
    await expect(verifyCommand(script("process.exit(2)"))(call, signal)).rejects.toThrow(
      "exited with code 2",
    );
  });
});
