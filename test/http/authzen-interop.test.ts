/**
 * The AuthZEN working group's to-do scenario, which other decision points answer too: who may do what to whose to-do.
 * The requests here are made from these facts. `npm run prove -- authzen --folder <dir>` sends the published ones, from
 * the folder interop/authzen-todo-backend/test of the group's repository.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const FOLDER = process.env["SVC_PROVE_AUTHZEN"];

const TOOLS = ["can_read_user", "can_read_todos", "can_create_todo", "can_update_todo", "can_delete_todo"];
const CHANGES = ["can_update_todo", "can_delete_todo"];
type Access = "all" | "own" | "none";
/** The fifth part of each person's id, which the published ids begin with, and what the person may change. */
const PEOPLE: readonly [name: string, email: string, letter: string, changes: Access][] = [
  ["rick", "rick@the-citadel.com", "A", "all"],
  ["morty", "morty@the-citadel.com", "E", "own"],
  ["summer", "summer@the-smiths.com", "I", "own"],
  ["beth", "beth@the-smiths.com", "M", "none"],
  ["jerry", "jerry@the-smiths.com", "Q", "none"],
];
const idOf = (letter: string): string => `CiRmZD${letter}2`;

/** The scenario's rules as a policy. */
function scenarioPolicy(): string {
  const own = PEOPLE.flatMap(([name, email, letter, changes]) =>
    changes === "own"
      ? [
          `  - {id: ${name}, match: {tool: "{${CHANGES.join(",")}}", actor: "${idOf(letter)}*"}, when: [{path: $args.ownerID, op: ne, value: ${email}}], action: deny, reason: not your own}`,
        ]
      : [],
  );
  const viewers = PEOPLE.filter(([, , , changes]) => changes === "none").map(
    ([, , letter]) => `${idOf(letter)}*`,
  );
  const changing = ["can_create_todo", ...CHANGES].join(",");
  return `version: 1
rules:
  - {id: viewers, match: {tool: "{${changing}}", actor: "{${viewers.join(",")}}"}, action: deny, reason: viewers only read}
${own.join("\n")}
`;
}

const scenarioServer = () =>
  testServer({
    manifests: TOOLS.map((tool) => `- {tool: ${tool}, effect: idempotent, permission: todo}`).join("\n"),
    policy: scenarioPolicy(),
  });

interface Scenario {
  evaluation?: { request: object; expected: boolean }[];
  evaluations?: { request: object; expected: { decision: boolean }[] }[];
}

/** The scenario, made from the facts: each person, each action, and for changes each owner. */
function factsOfScenario(): Scenario {
  const evaluation: NonNullable<Scenario["evaluation"]> = [];
  const evaluations: NonNullable<Scenario["evaluations"]> = [];
  for (const [, email, letter, changes] of PEOPLE) {
    const subject = { type: "user", id: idOf(letter) };
    const mayChange = (owner: string) => changes === "all" || (changes === "own" && owner === email);
    const ask = (name: string, resource: object, expected: boolean) =>
      evaluation.push({ request: { subject, action: { name }, resource }, expected });
    ask("can_read_user", { type: "user", id: "a user" }, true);
    ask("can_read_todos", { type: "todo", id: "1" }, true);
    ask("can_create_todo", { type: "todo", id: "1" }, changes !== "none");
    const todos = PEOPLE.map(([id, ownerID]) => ({ type: "todo", id, properties: { ownerID } }));
    for (const name of CHANGES) {
      for (const todo of todos) ask(name, todo, mayChange(todo.properties.ownerID));
      const request = { subject, action: { name }, evaluations: todos.map((resource) => ({ resource })) };
      const expected = todos.map(({ properties }) => ({ decision: mayChange(properties.ownerID) }));
      evaluations.push({ request, expected });
    }
  }
  return { evaluation, evaluations };
}

const published = (): [string, Scenario][] =>
  readdirSync(FOLDER!)
    .filter((file) => /1_0-0[12]\.json$/.test(file))
    .map((file) => [file, JSON.parse(readFileSync(join(FOLDER!, file), "utf8")) as Scenario]);

it.each([
  ["the facts", factsOfScenario()] as [string, Scenario],
  ...(FOLDER === undefined ? [] : published()),
])("the working group's scenario is answered as expected: %s", async (name, scenario) => {
  verifies("beyond.authzen.interop");
  const s = await scenarioServer();
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
  console.log(`${name}: ${answered} of ${answered} requests answered as expected`);
  expect(answered).toBeGreaterThan(39);
});
