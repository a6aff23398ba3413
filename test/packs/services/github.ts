/** What each tool of the GitHub pack is drilled with. */
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { Direct, PackDrill, ToolDrill } from "../drill.ts";

const REPO = "/repos/octocat/hello";
const PLACE = { owner: "octocat", repo: "hello" };
const base64 = (text: string): string => Buffer.from(text).toString("base64");

async function made(direct: Direct, path: string, body: JsonObject, key = "number"): Promise<number> {
  const answer = await direct("POST", path, body);
  return (answer.body as Record<string, number>)[key]!;
}
const issue = (direct: Direct) => made(direct, `${REPO}/issues`, { title: "old", body: "old body" });
const milestone = (direct: Direct) =>
  made(direct, `${REPO}/milestones`, {
    title: `m${names++}`,
    description: "d",
    due_on: "2030-01-01T00:00:00Z",
  });
let names = 0;

async function fileOn(direct: Direct, path: string): Promise<string> {
  const body = { message: "m", content: base64("old"), branch: "main" };
  const answer = await direct("PUT", `${REPO}/contents/${path}`, body);
  return (answer.body as { content: { sha: string } }).content.sha;
}

async function headSha(direct: Direct): Promise<string> {
  const { body } = await direct("GET", `${REPO}/git/ref/heads/main`);
  return (body as { object: { sha: string } }).object.sha;
}

async function branch(direct: Direct, name: string, sha?: string): Promise<string> {
  await direct("POST", `${REPO}/git/refs`, {
    ref: `refs/heads/${name}`,
    sha: sha ?? (await headSha(direct)),
  });
  return name;
}

const file = (path: string) => `${REPO}/contents/${path}?ref=main`;

const TOOLS: ToolDrill[] = [
  {
    tool: "github.issues.create",
    prepare: async () => ({ args: { ...PLACE, title: "new" }, look: [`${REPO}/issues?state=open`] }),
    stays: [/state_reason$/],
  },
  {
    tool: "github.issues.update",
    prepare: async (direct) => {
      const issue_number = await issue(direct);
      return {
        args: { ...PLACE, issue_number, title: "new", state: "closed" },
        look: [`${REPO}/issues/${issue_number}`],
      };
    },
    stays: [/state_reason/],
  },
  {
    tool: "github.issues.lock",
    prepare: async (direct) => {
      const issue_number = await issue(direct);
      return {
        args: { ...PLACE, issue_number, lock_reason: "resolved" },
        look: [`${REPO}/issues/${issue_number}`],
      };
    },
  },
  {
    tool: "github.issues.unlock",
    prepare: async (direct) => {
      const issue_number = await issue(direct);
      await direct("PUT", `${REPO}/issues/${issue_number}/lock`, { lock_reason: "spam" });
      return { args: { ...PLACE, issue_number }, look: [`${REPO}/issues/${issue_number}`] };
    },
  },
  {
    tool: "github.comments.create",
    prepare: async (direct) => {
      const issue_number = await issue(direct);
      return {
        args: { ...PLACE, issue_number, body: "hello" },
        look: [`${REPO}/issues/${issue_number}/comments`, `${REPO}/issues/${issue_number}`],
      };
    },
  },
  {
    tool: "github.comments.update",
    prepare: async (direct) => {
      const comments = `${REPO}/issues/${await issue(direct)}/comments`;
      const comment_id = await made(direct, comments, { body: "old" }, "id");
      return { args: { ...PLACE, comment_id, body: "new" }, look: [comments] };
    },
  },
  {
    tool: "github.labels.create",
    prepare: async () => ({
      args: { ...PLACE, name: "made", color: "ff0000", description: "d" },
      look: [`${REPO}/labels/made`],
    }),
  },
  {
    tool: "github.labels.update",
    prepare: async (direct) => {
      await direct("POST", `${REPO}/labels`, { name: "kept", color: "00ff00", description: "old" });
      return {
        args: { ...PLACE, name: "kept", color: "0000ff", description: "new" },
        look: [`${REPO}/labels/kept`],
      };
    },
  },
  {
    tool: "github.labels.delete",
    prepare: async (direct) => {
      await direct("POST", `${REPO}/labels`, { name: "gone", color: "00ff00", description: "old" });
      return { args: { ...PLACE, name: "gone" }, look: [`${REPO}/labels/gone`] };
    },
    stays: [/\.id$/],
  },
  {
    tool: "github.milestones.create",
    prepare: async () => ({ args: { ...PLACE, title: "first" }, look: [`${REPO}/milestones?state=all`] }),
  },
  {
    tool: "github.milestones.update",
    prepare: async (direct) => {
      const milestone_number = await milestone(direct);
      return {
        args: { ...PLACE, milestone_number, title: "new", state: "closed" },
        look: [`${REPO}/milestones/${milestone_number}`],
      };
    },
  },
  {
    tool: "github.pulls.create",
    prepare: async (direct) => {
      const head = await branch(direct, "feature-one");
      const put = { message: "m", content: base64("x"), branch: head };
      await direct("PUT", `${REPO}/contents/feature-one.txt`, put);
      return {
        args: { ...PLACE, title: "new", head, base: "main" },
        look: [`${REPO}/pulls?state=open`],
      };
    },
  },
  {
    tool: "github.pulls.update",
    prepare: async (direct) => {
      const head = await branch(direct, "feature-two");
      const put = { message: "m", content: base64("x"), branch: head };
      await direct("PUT", `${REPO}/contents/feature-two.txt`, put);
      const pull_number = await made(direct, `${REPO}/pulls`, {
        title: "old",
        body: "b",
        head,
        base: "main",
      });
      return {
        args: { ...PLACE, pull_number, title: "new", body: "n" },
        look: [`${REPO}/pulls/${pull_number}`],
      };
    },
  },
  {
    tool: "github.refs.update",
    prepare: async (direct) => {
      const old = await headSha(direct);
      await fileOn(direct, "moves.txt");
      await branch(direct, "team/moved", old);
      return {
        args: { ...PLACE, branch: "team/moved", sha: await headSha(direct) },
        look: [`${REPO}/git/ref/heads/team/moved`],
      };
    },
  },
  {
    tool: "github.refs.delete_branch",
    prepare: async (direct) => ({
      args: { ...PLACE, branch: await branch(direct, "dropped") },
      look: [`${REPO}/git/ref/heads/dropped`],
    }),
  },
  {
    tool: "github.contents.put",
    prepare: async (direct) => ({
      args: {
        ...PLACE,
        path: "known.txt",
        branch: "main",
        message: "m",
        content: base64("new"),
        sha: await fileOn(direct, "known.txt"),
      },
      look: [file("known.txt")],
    }),
  },
  {
    tool: "github.contents.put",
    prepare: async () => ({
      args: { ...PLACE, path: "docs/fresh.txt", branch: "main", message: "m", content: base64("new") },
      look: [file("docs/fresh.txt")],
    }),
  },
  {
    tool: "github.contents.delete",
    prepare: async (direct) => ({
      args: { ...PLACE, path: "old.txt", branch: "main", message: "m", sha: await fileOn(direct, "old.txt") },
      look: [file("old.txt")],
    }),
  },
  {
    tool: "github.repos.create",
    prepare: async () => ({ args: { name: "brand-new" }, look: ["/repos/octocat/brand-new"] }),
  },
  {
    tool: "github.repos.update",
    prepare: async () => ({
      args: { owner: "octocat", repo: "other", description: "new", has_wiki: false },
      look: ["/repos/octocat/other"],
    }),
  },
  {
    tool: "github.topics.set",
    prepare: async () => ({ args: { ...PLACE, names: ["b", "c"] }, look: [`${REPO}/topics`] }),
  },
  {
    tool: "github.collaborators.add",
    prepare: async () => ({
      args: { ...PLACE, username: "hubot", permission: "push" },
      look: [`${REPO}/collaborators`],
    }),
  },
  {
    tool: "github.releases.create",
    prepare: async () => ({ args: { ...PLACE, tag_name: "v1", name: "One" }, look: [`${REPO}/releases`] }),
  },
  {
    tool: "github.releases.update",
    prepare: async (direct) => {
      const body = { tag_name: "v2", name: "old", body: "old" };
      const release_id = await made(direct, `${REPO}/releases`, body, "id");
      return {
        args: { ...PLACE, release_id, name: "new", body: "new" },
        look: [`${REPO}/releases/${release_id}`],
      };
    },
  },
  {
    tool: "github.hooks.create",
    prepare: async () => ({
      args: {
        ...PLACE,
        name: "web",
        active: false,
        events: ["push"],
        config: { url: "http://127.0.0.1:9/x", content_type: "json" },
      },
      look: [`${REPO}/hooks`],
    }),
  },
  {
    tool: "github.teams.create",
    prepare: async () => ({ args: { org: "acme", name: "Core" }, look: ["/orgs/acme/teams"] }),
  },
  {
    tool: "github.team_members.set",
    prepare: async (direct) => {
      await direct("POST", "/orgs/acme/teams", { name: "Ops" });
      return {
        args: { org: "acme", team_slug: "ops", username: "hubot", role: "member" },
        look: ["/orgs/acme/teams/ops/members"],
      };
    },
  },
  {
    tool: "github.team_members.remove",
    prepare: async (direct) => {
      await direct("POST", "/orgs/acme/teams", { name: "Web" });
      await direct("PUT", "/orgs/acme/teams/web/memberships/hubot", { role: "member" });
      return {
        args: { org: "acme", team_slug: "web", username: "hubot" },
        look: ["/orgs/acme/teams/web/members"],
      };
    },
  },
];

export const github: PackDrill = {
  pack: "github",
  service: "github",
  seed: {
    tokens: { "drill-token": { login: "octocat", scopes: ["repo", "user", "admin:org", "delete_repo"] } },
    github: {
      users: [
        { login: "octocat", name: "Octo" },
        { login: "hubot", name: "Hu" },
      ],
      orgs: [{ login: "acme", name: "Acme" }],
      repos: [
        { owner: "octocat", name: "hello", auto_init: true, description: "d", topics: ["a"] },
        { owner: "octocat", name: "other", auto_init: true, description: "old" },
      ],
    },
  },
  hosts: { "api.github.com": "" },
  authorization: "Bearer drill-token",
  volatile: [
    "updated_at",
    "pushed_at",
    "closed_at",
    "closed_by",
    "open_issues",
    "open_issues_count",
    "size",
    "node_id",
  ],
  tools: TOOLS,
};
