/** What each tool of the Slack pack is drilled with. */
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { Direct, Look, PackDrill, ToolDrill } from "../drill.ts";

const api = (method: string, body: JsonObject): Look => ({ post: `/api/${method}`, body });

async function said(direct: Direct, method: string, body: JsonObject): Promise<Record<string, string>> {
  return (await direct("POST", `/api/${method}`, body)).body as Record<string, string>;
}

/** A separate channel for each tool. */
let channels = 0;
async function channel(direct: Direct): Promise<string> {
  const made = await direct("POST", "/api/conversations.create", { name: `drill-${channels++}` });
  return (made.body as { channel: { id: string } }).channel.id;
}

async function message(direct: Direct): Promise<{ channel: string; ts: string }> {
  const id = await channel(direct);
  const { ts } = await said(direct, "chat.postMessage", { channel: id, text: "old" });
  return { channel: id, ts: ts! };
}

const history = (id: string) => api("conversations.history", { channel: id });
const info = (id: string) => api("conversations.info", { channel: id });
const onChannel = (tool: string, more: JsonObject = {}, first: [string, JsonObject][] = []): ToolDrill => ({
  tool: `slack.${tool}`,
  prepare: async (direct) => {
    const id = await channel(direct);
    for (const [method, body] of first) await said(direct, method, { channel: id, ...body });
    return {
      args: { channel: id, ...more },
      look: [info(id), api("conversations.members", { channel: id })],
    };
  },
});
const onMessage = (tool: string, more: JsonObject, first?: string): ToolDrill => ({
  tool: `slack.${tool}`,
  prepare: async (direct) => {
    const { channel: id, ts } = await message(direct);
    if (first !== undefined) await said(direct, first, { channel: id, timestamp: ts, ...more });
    const look = [history(id), api("pins.list", { channel: id })];
    return { args: { channel: id, timestamp: ts, ...more }, look };
  },
});

/** A person that the emulator makes. */
const ADMIN = "U000000001";

const TOOLS: ToolDrill[] = [
  {
    tool: "slack.chat.postMessage",
    prepare: async (direct) => {
      const id = await channel(direct);
      return { args: { channel: id, text: "hello" }, look: [history(id)] };
    },
  },
  {
    tool: "slack.chat.update",
    prepare: async (direct) => {
      const { channel: id, ts } = await message(direct);
      return { args: { channel: id, ts, text: "new" }, look: [history(id)] };
    },
    stays: [/\.edited$/],
  },
  {
    tool: "slack.chat.scheduleMessage",
    prepare: async (direct) => {
      const id = await channel(direct);
      return {
        args: { channel: id, text: "later", post_at: Math.floor(Date.now() / 1_000) + 3_600 },
        look: [api("chat.scheduledMessages.list", { channel: id })],
      };
    },
  },
  onMessage("reactions.add", { name: "wave" }),
  onMessage("reactions.remove", { name: "wave" }, "reactions.add"),
  onMessage("pins.add", {}),
  onMessage("pins.remove", {}, "pins.add"),
  {
    tool: "slack.bookmarks.add",
    prepare: async (direct) => {
      const channel_id = await channel(direct);
      return {
        args: { channel_id, title: "b", type: "link", link: "https://example.com" },
        look: [api("bookmarks.list", { channel_id })],
      };
    },
  },
  {
    tool: "slack.conversations.create",
    prepare: async () => ({
      args: { name: "made-here" },
      look: [api("conversations.list", { exclude_archived: "true" })],
    }),
    stays: [/body\.channels$/],
  },
  onChannel("conversations.archive"),
  onChannel("conversations.unarchive", {}, [["conversations.archive", {}]]),
  onChannel("conversations.rename", { name: "renamed" }),
  onChannel("conversations.setTopic", { topic: "new" }, [["conversations.setTopic", { topic: "old" }]]),
  onChannel("conversations.setPurpose", { purpose: "new" }, [
    ["conversations.setPurpose", { purpose: "old" }],
  ]),
  onChannel("conversations.join", {}, [
    ["conversations.invite", { users: ADMIN }],
    ["conversations.leave", {}],
  ]),
  onChannel("conversations.leave", {}, [["conversations.invite", { users: ADMIN }]]),
  onChannel("conversations.invite", { users: ADMIN }),
  onChannel("conversations.kick", { user: ADMIN }, [["conversations.invite", { users: ADMIN }]]),
];

export const slack: PackDrill = {
  pack: "slack",
  service: "slack",
  seed: {
    slack: {
      team: { name: "Drills", domain: "drills" },
      users: [
        { name: "ann", real_name: "Ann", email: "ann@example.com" },
        { name: "bob", real_name: "Bob", email: "bob@example.com" },
      ],
      channels: [{ name: "general" }],
      tokens: [{ token: "xoxb-drill-token", user: "ann" }],
    },
  },
  hosts: { "slack.com": "" },
  authorization: "Bearer xoxb-drill-token",
  form: true,
  volatile: ["last_set", "creator", "created", "last_read", "date_created"],
  tools: TOOLS,
};
