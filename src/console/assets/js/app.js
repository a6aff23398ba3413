/** The console as an app: turns push messages on, keeps the badge, offers to install, and says when there is no network. */
(() => {
  const workers = navigator.serviceWorker;
  const able = workers !== undefined && "PushManager" in window && "Notification" in window;
  const csrf = document.querySelector('input[name="csrf"]');

  const note = (form, text) => {
    const place = form.querySelector("[data-push-note]");
    place.textContent = text;
    place.hidden = false;
  };
  const bytesOf = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const textOf = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const startWorker = async () => {
    await workers.register("/console/sw.js", { scope: "/console" });
    return workers.ready;
  };
  const nameOf = () => {
    const at = /iPhone|iPad|Android|Windows|Macintosh|Linux/.exec(navigator.userAgent);
    const by = /Edg|Firefox|Chrome|Safari/.exec(navigator.userAgent);
    return [by === null ? "Browser" : by[0].replace("Edg", "Edge"), at === null ? "" : "on " + at[0]].join(" ").trim();
  };

  const subscribe = async (form) => {
    if ((await Notification.requestPermission()) !== "granted")
      throw new Error("This browser does not allow notifications from this page. Allow them in its settings, then try again.");
    const { pushManager } = await startWorker();
    const known = await pushManager.getSubscription();
    if (known !== null && textOf(known.options.applicationServerKey) !== form.dataset.push) await known.unsubscribe();
    const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(form.dataset.push) });
    form.elements.namedItem("subscription").value = JSON.stringify(made);
    const label = form.elements.namedItem("label");
    if (label.value === "") label.value = nameOf();
  };

  const form = document.querySelector("form[data-push]");
  if (form !== null && !able)
    note(form, "This browser offers no push messages here. On an iPhone or iPad, add the console to the Home Screen first, and open it from there.");
  if (form !== null && able)
    form.addEventListener("submit", (event) => {
      if (form.dataset.ready) return;
      event.preventDefault();
      event.stopPropagation();
      subscribe(form).then(
        () => {
          form.dataset.ready = "1";
          form.requestSubmit();
        },
        (error) => note(form, error.message),
      );
    });

  /* Ties the subscription to this session, and drops one that was removed elsewhere. Once a session. */
  const keep = async () => {
    const registration = await workers.getRegistration("/console");
    if (registration === undefined) return;
    await registration.update().catch(() => {});
    const known = registration.pushManager ? await registration.pushManager.getSubscription() : null;
    if (known === null || csrf === null || sessionStorage.getItem("push") === csrf.value) return;
    const fields = new URLSearchParams({ csrf: csrf.value, subscription: JSON.stringify(known) });
    const answer = await fetch("/console/push/here", { method: "POST", body: fields, redirect: "manual", cache: "no-store" });
    if (!answer.ok) return;
    sessionStorage.setItem("push", csrf.value);
    if (!(await answer.json()).known) await known.unsubscribe();
  };
  if (able) keep().catch(() => {});

  const setBadge = () => {
    if (!navigator.setAppBadge) return;
    const waiting = Number.parseInt(document.body.dataset.waiting, 10);
    if (waiting > 0) navigator.setAppBadge(waiting).catch(() => {});
    else if (waiting === 0) navigator.clearAppBadge().catch(() => {});
  };
  setBadge();
  if (matchMedia("(display-mode: standalone)").matches && workers !== undefined) startWorker().catch(() => {});

  const install = document.querySelector("[data-install]");
  addEventListener("beforeinstallprompt", (event) => {
    if (install === null) return;
    event.preventDefault();
    install.hidden = false;
    install.addEventListener("click", () => event.prompt(), { once: true });
  });
  addEventListener("appinstalled", () => {
    if (install !== null) install.hidden = true;
  });

  document.addEventListener(
    "submit",
    (event) => {
      if (navigator.onLine || event.target.method !== "post") return;
      event.preventDefault();
      event.stopPropagation();
      const text = document.createElement("p");
      text.textContent = "Nothing was sent, and nothing was decided. Try again when you are back online.";
      svc.dialog("No network", text, [{ label: "Close", kind: "plain" }]);
    },
    true,
  );
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.getAttribute("action") !== "/console/logout" || !able) return;
    sessionStorage.removeItem("push");
    workers.getRegistration("/console").then(async (one) => {
      const known = one?.pushManager ? await one.pushManager.getSubscription() : null;
      if (known !== null) await known.unsubscribe();
      if (one !== undefined) for (const shown of await one.getNotifications()) shown.close();
    });
    if (navigator.clearAppBadge) navigator.clearAppBadge().catch(() => {});
  });
})();
