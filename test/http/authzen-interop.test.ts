/**
 * The decisions of the AuthZEN working group's to-do scenario, which other decision points answer too. The scenario
 * stays in the group's repository: `SVC_PROVE_AUTHZEN=<its interop/authzen-todo-backend/test> npx vitest run <this file>`.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { testServer } from "../support/server.ts";

const FOLDER = process.env["SVC_PROVE_AUTHZEN"];

const TOOLS = ["can_read_user", "can_read_todos", "can_create_todo", "can_update_todo", "can_delete_todo"];
const [MORTY, SUMMER, BETH, JERRY] = ["E", "I", "M", "Q"].map((letter) => `CiRmZD${letter}2*`);
const OWN = "{can_update_todo,can_delete_todo}";
const POLICY = `version: 1
rules:
  - {id: viewers, match: {tool: "{can_create_todo,can_update_todo,can_delete_todo}", actor: "{${BETH},${JERRY}}"}, action: deny, reason: viewers only read}
  - {id: morty, match: {tool: "${OWN}", actor: "${MORTY}"}, when: [{path: $args.ownerID, op: ne, value: morty@the-citadel.com}], action: deny, reason: not your own}
  - {id: summer, match: {tool: "${OWN}", actor: "${SUMMER}"}, when: [{path: $args.ownerID, op: ne, value: summer@the-smiths.com}], action: deny, reason: not your own}
`;

interface Scenario {
  evaluation?: { request: object; expected: boolean }[];
  evaluations?: { request: object; expected: { decision: boolean }[] }[];
}

describe.skipIf(FOLDER === undefined)("the working group's decisions", () => {
  const files =
    FOLDER === undefined ? [] : readdirSync(FOLDER).filter((file) => /1_0-0[12]\.json$/.test(file));

  it.each(files)("%s", async (file) => {
    const manifests = TOOLS.map((tool) => `- {tool: ${tool}, effect: idempotent, permission: todo}`).join(
      "\n",
    );
    const s = await testServer({ manifests, policy: POLICY });
    const scenario = JSON.parse(readFileSync(join(FOLDER!, file), "utf8")) as Scenario;
    let answered = 0;
    for (const { request, expected } of scenario.evaluation ?? []) {
      const { body } = await s.call("auditor", "POST", "/access/v1/evaluation", request);
      expect([request, body.decision]).toEqual([request, expected]);
      answered++;
    }
    for (const { request, expected } of scenario.evaluations ?? []) {
      const { body } = await s.call("auditor", "POST", "/access/v1/evaluations", request);
      const decisions = body.evaluations.map(({ decision }: { decision: boolean }) => ({ decision }));
      expect([request, decisions]).toEqual([request, expected]);
      answered++;
    }
    console.log(`${file}: ${answered} of ${answered} requests answered as expected`);
  });
});
