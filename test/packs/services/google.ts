/** What each tool of the Calendar, Drive and Gmail packs is drilled with. */
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { Direct, PackDrill } from "../drill.ts";

const ME = "/gmail/v1/users/me";
const EVENTS = "/calendar/v3/calendars/primary/events";

async function made(direct: Direct, path: string, body: JsonObject): Promise<JsonObject & { id: string }> {
  return (await direct("POST", path, body)).body as JsonObject & { id: string };
}

const raw = (text: string): string =>
  Buffer.from(`From: ann@example.com\r\nTo: ann@example.com\r\nSubject: s\r\n\r\n${text}`).toString(
    "base64url",
  );
const message = (direct: Direct) =>
  made(direct, `${ME}/messages`, { raw: raw("hello"), labelIds: ["INBOX"] });

const SHARED = {
  service: "google",
  seed: {
    google: { users: [{ email: "ann@example.com", name: "Ann" }] },
    tokens: { "drill-token": { login: "ann@example.com" } },
  },
  authorization: "Bearer drill-token",
} as const;

export const calendar: PackDrill = {
  ...SHARED,
  pack: "calendar",
  hosts: { "www.googleapis.com": "" },
  volatile: ["updated", "etag"],
  tools: [
    {
      tool: "calendar.events.insert",
      prepare: async () => ({
        args: {
          calendar: "primary",
          summary: "Lunch",
          start: { dateTime: "2030-01-01T10:00:00Z" },
          end: { dateTime: "2030-01-01T11:00:00Z" },
        },
        look: [EVENTS],
      }),
    },
  ],
};

/** The emulator ignores `trashed` in an update, which the effect check finds; so nothing that uses the trash is drilled. */
export const drive: PackDrill = {
  ...SHARED,
  pack: "drive",
  hosts: { "www.googleapis.com": "" },
  volatile: ["modifiedTime", "version"],
  tools: [
    {
      tool: "drive.files.update",
      prepare: async (direct) => {
        const { id } = await made(direct, "/drive/v3/files", { name: "old" });
        return { args: { file: id, name: "new" }, look: [`/drive/v3/files/${id}`] };
      },
    },
  ],
};

export const gmail: PackDrill = {
  ...SHARED,
  pack: "gmail",
  hosts: { "gmail.googleapis.com": "" },
  volatile: ["historyId", "internalDate"],
  tools: [
    {
      tool: "gmail.labels.create",
      prepare: async () => ({ args: { name: "Made" }, look: [`${ME}/labels`] }),
    },
    {
      tool: "gmail.labels.patch",
      prepare: async (direct) => {
        const { id } = await made(direct, `${ME}/labels`, { name: "Old" });
        return { args: { label: id, name: "New" }, look: [`${ME}/labels/${id}`] };
      },
    },
    {
      tool: "gmail.messages.trash",
      prepare: async (direct) => {
        const { id } = await message(direct);
        return { args: { message: id }, look: [`${ME}/messages/${id}?format=minimal`] };
      },
    },
    {
      tool: "gmail.messages.untrash",
      prepare: async (direct) => {
        const { id } = await message(direct);
        await direct("POST", `${ME}/messages/${id}/trash`, {});
        return { args: { message: id }, look: [`${ME}/messages/${id}?format=minimal`] };
      },
    },
    {
      tool: "gmail.threads.trash",
      prepare: async (direct) => {
        const { threadId } = (await message(direct)) as unknown as { threadId: string };
        return { args: { thread: threadId }, look: [`${ME}/threads/${threadId}?format=minimal`] };
      },
    },
    {
      tool: "gmail.threads.untrash",
      prepare: async (direct) => {
        const { threadId } = (await message(direct)) as unknown as { threadId: string };
        await direct("POST", `${ME}/threads/${threadId}/trash`, {});
        return { args: { thread: threadId }, look: [`${ME}/threads/${threadId}?format=minimal`] };
      },
    },
    {
      tool: "gmail.drafts.create",
      prepare: async () => ({ args: { message: { raw: raw("draft") } }, look: [`${ME}/drafts`] }),
    },
    {
      tool: "gmail.drafts.update",
      prepare: async (direct) => {
        const { id } = await made(direct, `${ME}/drafts`, { message: { raw: raw("old") } });
        return {
          args: { draft: id, message: { raw: raw("new") } },
          look: [`${ME}/drafts/${id}?format=raw`],
        };
      },
      stays: [/message\.(id|threadId)$/],
    },
    {
      tool: "gmail.filters.create",
      prepare: async () => ({
        args: { criteria: { from: "x@example.com" }, action: { addLabelIds: ["STARRED"] } },
        look: [`${ME}/settings/filters`],
      }),
    },
  ],
};
