/** A virtual authenticator of Chromium, over the DevTools protocol: a device that can be put away and refuse. */
import type { CDPSession, Page } from "playwright-core";

const sessions = new WeakMap<Page, CDPSession>();

async function sessionOf(page: Page): Promise<CDPSession> {
  const known = sessions.get(page);
  if (known !== undefined) return known;
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  sessions.set(page, session);
  return session;
}

export interface VirtualAuthenticator {
  hide(): Promise<void>;
  show(): Promise<void>;
  refuse(): Promise<void>;
}

export async function virtualAuthenticator(
  page: Page,
  transport: "internal" | "usb" = "internal",
): Promise<VirtualAuthenticator> {
  const session = await sessionOf(page);
  const add = async () => {
    const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport,
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return authenticatorId;
  };
  let authenticatorId = await add();
  type Kept = Awaited<ReturnType<typeof credentials>>;
  const credentials = async () =>
    (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
  let kept: Kept = [];
  return {
    /** The device is elsewhere. */
    async hide() {
      kept = await credentials();
      await session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
    },
    async show() {
      authenticatorId = await add();
      for (const credential of kept)
        await session.send("WebAuthn.addCredential", { authenticatorId, credential });
    },
    /** The person does not unlock it. */
    async refuse() {
      await session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
    },
  };
}
