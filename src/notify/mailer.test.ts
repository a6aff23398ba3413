import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { afterEach, describe, expect, it } from "vitest";
import { selfSigned } from "../../test/golden/notify/support/certificate.ts";
import { CONFIGS, CONTEXT, EVENTS } from "../../test/golden/notify/support/samples.ts";
import { verifies } from "../../test/support/verifies.ts";
import { createEgress } from "../egress/egress.ts";
import type { MailDelivery } from "./channel.ts";
import { renderFor } from "./channels/table.ts";
import { type DeliveryError, deliverMessage } from "./deliver.ts";
import type { NotificationEvent } from "./events.ts";

const tls = selfSigned(["mail.test"]);
const open: { close(done: () => void): unknown }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => new Promise<void>((resolve) => server.close(resolve))));
});

interface Taken {
  from: string;
  to: string[];
  raw: string;
  secure: boolean;
  user: string | undefined;
}

async function mailServer(options: ConstructorParameters<typeof SMTPServer>[0] = {}) {
  const taken: Taken[] = [];
  const server = new SMTPServer({
    ...tls,
    authOptional: true,
    logger: false,
    onAuth: (auth, _session, done) =>
      auth.password === "right" ? done(null, { user: auth.username }) : done(new Error("no")),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const from = session.envelope.mailFrom;
        taken.push({
          from: from === false ? "" : from.address,
          to: session.envelope.rcptTo.map((rcpt) => rcpt.address),
          raw: Buffer.concat(chunks).toString("utf8"),
          secure: session.secure,
          user: session.user as string | undefined,
        });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => undefined);
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return { taken, port: (server.server.address() as AddressInfo).port };
}

const egress = createEgress(
  { block_private: false },
  { lookup: () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]) },
);
function mail(
  server: Partial<MailDelivery["server"]>,
  event: NotificationEvent = EVENTS.alert,
): MailDelivery {
  const [delivery] = renderFor(CONFIGS.smtp, event, CONTEXT) as [MailDelivery];
  return {
    ...delivery,
    server: {
      host: "mail.test",
      port: 0,
      secure: false,
      starttls: "required",
      user: undefined,
      password: undefined,
      ...server,
    },
  };
}
const send = (delivery: MailDelivery, ca: string | undefined = tls.cert) =>
  deliverMessage(delivery, { egress, ca });
const failure = (work: Promise<void>) =>
  work.then(
    () => undefined,
    (error: unknown) => error as DeliveryError,
  );
const text = (raw: string) =>
  raw
    .replace(/=\r?\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_m, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

describe("mail", () => {
  it("goes over STARTTLS to the pinned address, with the host's name verified", async () => {
    const { taken, port } = await mailServer();
    await send(mail({ port }));
    expect(taken).toMatchObject([
      { from: "svc@example.com", to: ["ops@example.com", "oncall@example.com"], secure: true },
    ]);
    const raw = text(taken[0]!.raw);
    expect(raw).toMatch(/^Subject: \[svc\] Alert: An undo failed\r$/m);
    expect(raw).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(raw).toMatch(/^Content-Type: text\/plain/m);
    expect(raw).toContain("Run:         run_01hx-refunds");
    expect(raw).toContain("https://svc.example.com/console/alerts");
  });

  it("goes over TLS from the first byte, with a login", async () => {
    const { taken, port } = await mailServer({ secure: true, authOptional: false });
    await send(mail({ port, secure: true, user: "svc", password: "right" }));
    expect(taken).toMatchObject([{ secure: true, user: "svc" }]);
  });

  it.each([
    ["a certificate nobody vouches for", {}, undefined],
    ["a certificate for another name", { host: "other.test" }, tls.cert],
  ])("is not sent under %s", async (_name, server, ca) => {
    const { taken, port } = await mailServer();
    const error = await failure(deliverMessage(mail({ port, ...server }), { egress, ca }));
    expect(error?.message).toMatch(/certificate|altnames/i);
    expect(taken).toEqual([]);
  });

  it("is not sent where TLS is required and the server has none", async () => {
    const { taken, port } = await mailServer({ hideSTARTTLS: true, disabledCommands: ["STARTTLS"] });
    expect(await failure(send(mail({ port, user: "svc", password: "right" })))).toBeDefined();
    expect(taken).toEqual([]);
  });

  it("may go to this machine without TLS, or under any certificate", async () => {
    const plain = await mailServer({ hideSTARTTLS: true, disabledCommands: ["STARTTLS"] });
    await send(mail({ host: "127.0.0.1", port: plain.port, starttls: "optional" }), undefined);
    const self = await mailServer();
    await send(mail({ host: "127.0.0.1", port: self.port, starttls: "optional" }), undefined);
    expect([...plain.taken, ...self.taken].map((got) => got.secure)).toEqual([false, true]);
  });

  it("cannot be given further headers or recipients by an agent's text", async () => {
    const { taken, port } = await mailServer();
    const evil = "x\r\nBcc: victim@evil.example\r\n\r\n<b>forged</b>\r\n.\r\nRCPT TO:<victim@evil.example>";
    await send(mail({ port }, { ...EVENTS.alert, title: evil, message: evil, tool: evil, run_id: evil }));
    const [head] = taken[0]!.raw.split("\r\n\r\n");
    expect(head).not.toMatch(/^bcc:/im);
    expect(taken[0]!.to).toEqual(["ops@example.com", "oncall@example.com"]);
    expect(taken).toHaveLength(1);
    expect(text(taken[0]!.raw)).not.toMatch(/^(Bcc|RCPT)/m);
  });

  it("is tried again after a passing refusal and not after a final one", async () => {
    const refuse = (code: number) => ({
      onRcptTo: (_address: unknown, _session: unknown, done: (error: Error) => void) =>
        done(Object.assign(new Error("not now"), { responseCode: code })),
    });
    const busy = await mailServer(refuse(451) as never);
    expect(await failure(send(mail({ port: busy.port })))).toMatchObject({ retry: true });
    const never = await mailServer(refuse(550) as never);
    expect(await failure(send(mail({ port: never.port })))).toMatchObject({ retry: false });
    const auth = await mailServer();
    expect(await failure(send(mail({ port: auth.port, user: "svc", password: "wrong" })))).toMatchObject({
      retry: false,
    });
    expect(await failure(send(mail({ port: 1 })))).toMatchObject({ retry: true });
  });

  it("is not answered in the server's own words, which may repeat the login", async () => {
    const { port } = await mailServer({
      onAuth: ({ username, password }, _session, done) =>
        done(new Error(`${username}:${password} is unknown`)),
    });
    const error = await failure(send(mail({ port, user: "svc", password: "wr0ng-w0rd" })));
    expect(error?.message).toMatch(/^the mail server answered 535 to AUTH/);
    expect(error?.message).not.toContain("wr0ng");
  });

  it("is stopped by the egress rules like everything else", async () => {
    verifies("contract.readings.egress-smtp");
    const strict = createEgress(
      { block_private: true },
      { lookup: () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]) },
    );
    const error = await failure(deliverMessage(mail({ port: 25 }), { egress: strict }));
    expect(error).toMatchObject({
      retry: false,
      message: expect.stringContaining('egress rule "private"') as string,
    });
    const listed = createEgress({ allow: ["*.example.com"], block_private: false });
    expect((await failure(deliverMessage(mail({ port: 25 }), { egress: listed })))?.message).toContain(
      'egress rule "allow"',
    );
  });
});
