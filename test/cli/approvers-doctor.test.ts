/** `svc doctor` on approvers files. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { DoctorFinding } from "../../src/cli/doctor/finding.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

it("warns of signed rules whose tools no `require` names", async () => {
  verifies("beyond.approvers.doctor");
  const folder = tempDir("approvers-doctor");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write(
    "manifests.yaml",
    "- {tool: pay.refund, effect: idempotent, permission: p}\n- {tool: x.y, effect: read, permission: p}\n",
  );
  write(
    "policy.yaml",
    "version: 1\nrules:\n  - {id: a, match: {tool: 'pay.*'}, action: require_approval, approval: {signed: true}}\n",
  );
  const file = (tool: string) =>
    write(
      "approvers.json",
      JSON.stringify({
        version: 1,
        ledger: "example.com/ledger",
        rp_id: "svc.example.com",
        origins: ["https://svc.example.com"],
        approvers: [],
        require: [{ tool, groups: [], quorum: 1 }],
      }),
    );
  const found = async (more = "approvers: approvers.json\n") => {
    write(
      "svc.config.yaml",
      `manifests: manifests.yaml\npolicy: policy.yaml\nledger_origin: example.com/ledger\n${more}`,
    );
    const { out } = await speak(["doctor", "--json"], { cwd: folder });
    const { checks } = JSON.parse(out) as { checks: DoctorFinding[] };
    return checks.filter(({ check }) => check === "approvers").map(({ status }) => status);
  };
  file("pay.*");
  expect(await found()).toEqual(["ok"]);
  file("mail.*");
  expect(await found()).toEqual(["warn"]);
  expect(await found("")).toEqual(["warn"]);
  write("approvers.json", "{");
  expect(await found()).toEqual(["fail"]);
});
