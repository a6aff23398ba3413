/** What each tool of the Linear pack is drilled with. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/kernel/json/json.ts";
import type { Direct, Look, PackDrill, ToolDrill } from "../drill.ts";

async function ask(direct: Direct, query: string, variables: JsonObject = {}): Promise<JsonObject> {
  const { body } = await direct("POST", "/graphql", { query, variables });
  return objectOf(body)["data"] as JsonObject;
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {});

/** The id in the answer of a mutation with one field and one object. */
async function made(direct: Direct, field: string, input: JsonObject): Promise<string> {
  const [kind, thing] = {
    issueCreate: ["Issue", "issue"],
    commentCreate: ["Comment", "comment"],
    issueLabelCreate: ["IssueLabel", "issueLabel"],
  }[field]!;
  const query = `mutation($input: ${kind}CreateInput!) { ${field}(input: $input) { ${thing} { id } } }`;
  return String(objectOf(objectOf((await ask(direct, query, { input }))[field])[thing!])["id"]);
}

async function team(direct: Direct): Promise<string> {
  const { teams } = await ask(direct, "{ teams { nodes { id } } }");
  return String(objectOf((objectOf(teams)["nodes"] as JsonValue[])[0])["id"]);
}

async function issue(direct: Direct): Promise<string> {
  return made(direct, "issueCreate", {
    teamId: await team(direct),
    title: "old",
    description: "d",
    priority: 2,
  });
}

const comment = async (direct: Direct) =>
  made(direct, "commentCreate", { issueId: await issue(direct), body: "old" });
const label = (direct: Direct, name: string) => made(direct, "issueLabelCreate", { name, color: "#112233" });

const look = (query: string): Look[] => [{ post: "/graphql", body: { query } }];
const ISSUE = "id title description priority dueDate archivedAt state { id } labels { nodes { id } }";
const issueLook = (id: string) => look(`{ issue(id: "${id}") { ${ISSUE} } }`);
const commentLook = (id: string) => look(`{ comment(id: "${id}") { body } }`);
const labelLook = (id: string) => look(`{ issueLabel(id: "${id}") { name color description } }`);

async function archived(direct: Direct): Promise<string> {
  const id = await issue(direct);
  await ask(direct, `mutation { issueArchive(id: "${id}") { success } }`);
  return id;
}

const ISSUES: ToolDrill[] = [
  {
    tool: "linear.issues.create",
    prepare: async (direct) => ({
      args: { input: { teamId: await team(direct), title: "new" } },
      look: look("{ issues { nodes { title } } }"),
    }),
  },
  {
    tool: "linear.issues.update",
    prepare: async (direct) => {
      const id = await issue(direct);
      return {
        args: { id, input: { title: "new", description: "other", priority: 1, dueDate: "2030-01-01" } },
        look: issueLook(id),
      };
    },
  },
  {
    tool: "linear.issues.archive",
    prepare: async (direct) => {
      const id = await issue(direct);
      return { args: { id }, look: issueLook(id) };
    },
  },
  {
    tool: "linear.issues.unarchive",
    prepare: async (direct) => {
      const id = await archived(direct);
      return { args: { id }, look: issueLook(id) };
    },
    stays: [/archivedAt$/],
  },
  {
    tool: "linear.issue_labels.add",
    prepare: async (direct) => {
      const id = await issue(direct);
      return { args: { id, labelId: await label(direct, "added") }, look: issueLook(id) };
    },
  },
  {
    tool: "linear.issue_labels.remove",
    prepare: async (direct) => {
      const [id, labelId] = [await issue(direct), await label(direct, "removed")];
      await ask(direct, `mutation { issueAddLabel(id: "${id}", labelId: "${labelId}") { success } }`);
      return { args: { id, labelId }, look: issueLook(id) };
    },
  },
];

export const linear: PackDrill = {
  pack: "linear",
  service: "linear",
  seed: {
    linear: {
      users: [{ email: "ann@example.com", name: "Ann", admin: true }],
      teams: [{ key: "ENG", name: "Engineering" }],
      tokens: [{ token: "lin_drill_token", user: "ann@example.com", scopes: [] }],
      strict_scopes: false,
    },
  },
  hosts: { "api.linear.app": "" },
  authorization: "Bearer lin_drill_token",
  volatile: [],
  tools: [
    ...ISSUES,
    {
      tool: "linear.comments.create",
      prepare: async (direct) => ({
        args: { input: { issueId: await issue(direct), body: "new" } },
        look: look("{ comments { nodes { body } } }"),
      }),
    },
    {
      tool: "linear.comments.update",
      prepare: async (direct) => {
        const id = await comment(direct);
        return { args: { id, input: { body: "new" } }, look: commentLook(id) };
      },
    },
    {
      tool: "linear.labels.create",
      prepare: async () => ({
        args: { input: { name: "made", color: "#445566" } },
        look: look("{ issueLabels { nodes { name } } }"),
      }),
    },
    {
      tool: "linear.labels.update",
      prepare: async (direct) => {
        const id = await label(direct, "before");
        return { args: { id, input: { name: "after", color: "#778899" } }, look: labelLook(id) };
      },
    },
  ],
};
