/** Requirements on push messages and on the approver's screen at phone size. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Push = section("beyond", "Push messages", {
  "beyond.push.standard": [39, "a message keeps RFC 8030, 8291 and 8292 to the byte: TTL, urgency, topic, aes128gcm for the browser alone, an ES256 JWT for the origin of the push service"],
  "beyond.push.content": [39, "a message holds ids, the rule, the agent and counts: no value, tool, argument name or reason; its length tells little"],
  "beyond.push.routes": [39, "`POST`, `GET`, `PATCH` and `DELETE /v1/push` add, list, change and remove devices; an admin sees and removes those of everybody; endpoint and keys are in no answer"],
  "beyond.push.person": [39, "devices belong to a person who signed in; what is no subscription is refused"],
  "beyond.push.ten": [39, "a person has at most 10 devices"],
  "beyond.push.https": [39, "endpoints are https, without credentials, and never private except with `push.allow_private`; a name that resolves to a private address later is refused too"],
  "beyond.push.gone": [39, "404 and 410 delete a device; other failures are tried again, logged without the endpoint, and shown to the person"],
  "beyond.push.signing-out": [39, "signing out deletes the devices of that session, and disabling or deleting the key those of the person"],
  "beyond.push.ends": [39, "a session that the identity provider revoked, a changed credential, and a key that is disabled or has expired end the messages to the person's devices, also those that wait for another attempt"],
  "beyond.push.redirects": [39, "a redirect of a push service is not followed"],
  "beyond.push.labels": [39, "the name of a device holds no control or invisible characters"],
  "beyond.push.unreadable": [39, "a message that cannot be read shows that requests may wait, and nothing of itself"],
  "beyond.push.moves": [39, "a browser that another person adds shows that person's messages alone"],
  "beyond.push.groups": [39, "messages go to members of the groups, never to the person who asked, nor to one who voted"],
  "beyond.push.escalation": [39, "an escalated request is sent to those it escalated to"],
  "beyond.push.delegation": [39, "a delegate gets what the delegator could decide, until the delegation ends"],
  "beyond.push.tenants": [39, "people bound to a tenant hear of that tenant alone"],
  "beyond.push.floods": [39, "a flood is one message with the number that waits for the person"],
  "beyond.push.plans": [39, "a plan is one message to those who decide any of its calls"],
  "beyond.push.quiet": [39, "in the quiet hours nothing is sent except for irreversible calls; afterwards one message counts what waits"],
  "beyond.push.break-glass": [39, "a break-glass approval is sent to admins, also in quiet hours"],
  "beyond.push.withdrawn": [39, "a decision made elsewhere, a withdrawal and the end of a request withdraw the notification, and replace it where it was not delivered yet"],
  "beyond.push.one-key": [39, "the VAPID pair is made once, whatever the number of processes; `push.key` replaces it"],
  "beyond.push.never-delays": [39, "a push service that hangs or fails delays and changes no decision, and no message to another device"],
  "beyond.push.records": [39, "subscribing and sending write no record"],
  "beyond.push.stores": [39, "devices survive a restart in every store"],
  "beyond.push.test": [39, "`svc doctor --send-test`, `svc push test` and a button in the settings send one message to one's own devices"],
  "beyond.push.command": [39, "`svc push list`, `quiet`, `test` and `remove` do what the routes do"],
  "beyond.push.console": [39, "the console turns messages on and off for a device, sets quiet hours and lists devices"],
  "beyond.push.worker": [39, "the worker shows a request and opens its card with one tap, replaces and withdraws it, and sets the badge"],
  "beyond.push.stores-nothing": [39, "the installed app stores no page and no value; without network it says so, and that nothing was decided"],
  "beyond.push.install": [39, "the console installs as an app: manifest, icons, worker; the button appears where the browser offers it"],
});

// biome-ignore format: one statement a line
export const beyond2Phone = section("beyond", "The approver's screen on a phone", {
  "beyond.phone.card-first": [39, "a card comes before the search and the navigation"],
  "beyond.phone.first-paint": [39, "a card is in its place when it is first painted, and does not move"],
  "beyond.phone.in-reach": [39, "the buttons are in sight at every scroll position, after the values in the page, and say that there is more to read"],
  "beyond.phone.one-by-one": [39, "one request a screen, with the previous and the next one"],
  "beyond.phone.raw-behind": [39, "the raw value of a diff is folded and not repeated under it; nothing of it is left out"],
  "beyond.phone.read-first": [39, "the button in reach does not confirm an irreversible call: everything is opened, then the box is checked"],
  "beyond.phone.halt-line": [39, "a halt of another agent is one line"],
  "beyond.phone.no-script": [39, "the screen decides without script"],
  "beyond.phone.walk": [39, "from the notification, a refund, an edit and a plan take two taps to their signed decision, a group three, a mail with long values four; without network, with an expired login and after somebody else decided, the screen says so"],
  "beyond.phone.taps": [39, "from the notification to the decision of a call that can be undone: two taps"],
  "beyond.phone.decided": [39, "a request that somebody else decided says so, and is not decided again"],
});
