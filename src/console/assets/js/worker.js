/**
 * The worker of the installed console: shows push messages, withdraws them, opens their cards, and says when there is
 * no network. It stores nothing: no page, no value.
 */
"use strict";
const PLACES = { approval: "/console/approvals/", plan: "/console/plans/" };
const OTHERS = { digest: "/console/approvals", alert: "/console/alerts", test: "/console/push" };
const TITLES = {
  approval: "Approval needed",
  plan: "A plan waits for approval",
  digest: "Requests wait for approval",
  alert: "An admin approved alone (break glass)",
  withdrawn: "Nothing left to decide",
  test: "Test message",
};

const pathOf = ({ type, id }) => (type in PLACES ? PLACES[type] + encodeURIComponent(id) : OTHERS[type] || "/console/approvals");
const requests = (count) => count + (count === 1 ? " request" : " requests");
const textOf = ({ type, agent, rule, count, escalated }) => {
  if (type === "digest" && count === undefined) return "Open the console to see them.";
  if (type === "digest") return agent === null ? requests(count) : requests(count) + " of " + agent;
  if (type === "test") return "Messages reach this device.";
  const parts = [escalated ? "escalated" : null, agent, rule === null ? null : "rule " + rule];
  return parts.filter((part) => part !== null && part !== undefined).join(" \u00b7 ");
};
const read = (data) => {
  try {
    return data.json();
  } catch {
    return { type: "digest", id: "waiting", agent: null, rule: null };
  }
};
const setBadge = async (waiting) => {
  if (!self.navigator.setAppBadge || typeof waiting !== "number") return;
  await (waiting > 0 ? self.navigator.setAppBadge(waiting) : self.navigator.clearAppBadge());
};

/*
 * Runs one job after the other. Chromium forgets a notification that is being shown while another job lists them: a
 * withdrawal would leave it in sight, without a page behind it.
 */
let last = Promise.resolve();
const inTurn = (job) => {
  last = last.then(job, job);
  return last;
};

/* Browsers want each message to show something. A withdrawal replaces its notification without a sound, and closes it. */
const show = async (message) => {
  const { type, id } = message;
  const gone = type === "withdrawn";
  const before = gone ? await self.registration.getNotifications({ tag: id }) : [];
  await self.registration.showNotification(TITLES[type] || TITLES.digest, {
    body: textOf(message),
    tag: id,
    renotify: !gone,
    silent: gone,
    icon: "/console/assets/icon-192.png",
    badge: "/console/assets/badge-96.png",
    data: { path: pathOf(message) },
  });
  if (gone) for (const one of [...before, ...(await self.registration.getNotifications({ tag: id }))]) one.close();
  await setBadge(message.waiting).catch(() => {});
};

const openPage = async (path) => {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = windows.find(({ url }) => new URL(url).pathname === path);
  return there === undefined ? self.clients.openWindow(path) : there.focus();
};

const OFFLINE =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>No network</title></head><body style="font: 17px/1.5 system-ui; max-width: 34em; margin: 15vh auto; padding: 0 20px"><h1>No network</h1><p>The page was not loaded, and nothing was decided. A request keeps waiting until it expires.</p><p><a href="" style="display: inline-block; padding: 12px 20px; border: 1px solid; border-radius: 8px; color: inherit; font-weight: 600; text-decoration: none">Try again</a></p></body></html>';
const offline = () =>
  new Response(OFFLINE, { status: 503, headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" } });

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(inTurn(() => show(read(event.data)))));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPage(event.notification.data.path));
});
self.addEventListener("fetch", (event) => {
  const { mode, method } = event.request;
  if (mode === "navigate" && method === "GET") event.respondWith(fetch(event.request).catch(offline));
});
