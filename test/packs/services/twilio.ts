/** What each tool of the Twilio pack is drilled with. */
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { Direct, PackDrill, ToolDrill } from "../drill.ts";

const ACCOUNT = "AC00000000000000000000000000000000";
const NUMBERS = `/2010-04-01/Accounts/${ACCOUNT}/IncomingPhoneNumbers`;
const TOKEN = Buffer.from(`${ACCOUNT}:twilio_test_auth_token`).toString("base64");

async function made(direct: Direct, path: string, body: JsonObject): Promise<string> {
  return ((await direct("POST", path, body)).body as { sid: string }).sid;
}

const service = (kind: string, path: string): ToolDrill[] => [
  {
    tool: `twilio.${kind}.create`,
    prepare: async () => ({ args: { FriendlyName: "made" }, look: [path] }),
  },
  {
    tool: `twilio.${kind}.update`,
    prepare: async (direct) => {
      const id = await made(direct, path, { FriendlyName: "old" });
      return { args: { service: id, FriendlyName: "new" }, look: [`${path}/${id}`] };
    },
  },
];

export const twilio: PackDrill = {
  pack: "twilio",
  service: "twilio",
  seed: {
    twilio: { account: { sid: ACCOUNT, auth_token: "twilio_test_auth_token", friendly_name: "Drills" } },
  },
  hosts: {
    "api.twilio.com": "",
    "messaging.twilio.com": "/messaging",
    "verify.twilio.com": "/verify",
  },
  authorization: `Basic ${TOKEN}`,
  form: true,
  volatile: ["date_updated"],
  tools: [
    {
      tool: "twilio.numbers.buy",
      prepare: async () => ({
        args: { account: ACCOUNT, PhoneNumber: "+15005550006" },
        look: [`${NUMBERS}.json`],
      }),
    },
    {
      tool: "twilio.numbers.update",
      prepare: async (direct) => {
        const fields = {
          PhoneNumber: "+15005550007",
          FriendlyName: "old",
          VoiceUrl: "https://example.com/voice",
          SmsUrl: "https://example.com/sms",
        };
        const number = await made(direct, `${NUMBERS}.json`, fields);
        return {
          args: { account: ACCOUNT, number, FriendlyName: "new", SmsUrl: "https://example.com/new" },
          look: [`${NUMBERS}/${number}.json`],
        };
      },
    },
    ...service("messaging_services", "/messaging/v1/Services"),
    ...service("verify_services", "/verify/v2/Services"),
  ],
};
