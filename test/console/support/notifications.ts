/**
 * Notifications in a browser without windows, which shows none: the worker of the page keeps a list of them. A badge of the
 * app would end such a browser's page.
 */
import type { BrowserContext } from "playwright-core";

const GRANTED = `Object.defineProperty(Notification, "permission", { get: () => "granted" })`;
/** As browsers do: a notification replaces the one with its tag, and the list is in the order of showing. */
const LIST = `(() => {
  const list = new Map();
  registration.showNotification = async (title, { tag = "", body = "", data = null } = {}) => {
    const own = { title, body, tag, data, close: () => void (list.get(tag) === own && list.delete(tag)) };
    list.delete(tag);
    list.set(tag, own);
  };
  registration.getNotifications = async ({ tag } = {}) => [...list.values()].filter((one) => tag === undefined || one.tag === tag);
  navigator.setAppBadge = navigator.clearAppBadge = async () => {};
  self.NotificationEvent = class extends ExtendableEvent {
    constructor(type, { notification }) {
      super(type);
      this.notification = notification;
    }
  };
})()`;

export async function listNotifications(context: BrowserContext): Promise<void> {
  await context.addInitScript(GRANTED);
  context.on("serviceworker", (worker) => void worker.evaluate(LIST));
}
