/** Page enhancements: times in the reader's time zone, copy buttons, select-all boxes, no double submit. */
"use strict";
document.documentElement.classList.add("js");

const svc = {};

(() => {
  const clock = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short", hourCycle: "h23" });
  const dated = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short", hourCycle: "h23" });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long", hourCycle: "h23" });
  const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  const span = (ms) => {
    if (ms < 3600000) return Math.max(1, Math.round(ms / 60000)) + " min";
    if (ms < 172800000) return Math.round(ms / 3600000) + " h";
    return Math.round(ms / 86400000) + " days";
  };
  const ago = (at) => {
    const past = Date.now() - at;
    if (past < -60000) return "in " + span(-past);
    return past < 60000 ? "just now" : span(past) + " ago";
  };

  svc.localise = (root) => {
    for (const time of root.querySelectorAll("time[data-at]")) {
      const at = new Date(time.dateTime);
      if (time.dataset.at === "ago") time.textContent = ago(at.getTime());
      else if (time.dataset.at === "hour") time.textContent = hour.format(at);
      else time.textContent = (at.getFullYear() === new Date().getFullYear() ? clock : dated).format(at);
      time.title = exact.format(at) + "  (" + time.dateTime + ")";
    }
    for (const label of root.querySelectorAll("text[data-hour]")) label.textContent = hour.format(new Date(label.dataset.hour));
  };

  const copied = (button) => {
    button.classList.add("done");
    const label = button.getAttribute("aria-label");
    button.setAttribute("aria-label", "Copied");
    setTimeout(() => {
      button.classList.remove("done");
      button.setAttribute("aria-label", label);
    }, 1200);
  };
  const copyOldWay = (text) => {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button === null) return;
    event.preventDefault();
    const text = button.dataset.copy;
    const writing = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
    writing.catch(() => copyOldWay(text)).then(() => copied(button));
  });

  document.addEventListener("change", (event) => {
    if (event.target.name !== "all" || event.target.form === null || event.target.form.id !== "bulk") return;
    for (const box of document.querySelectorAll('input[form="bulk"][name="id"]')) box.checked = event.target.checked;
  });

  /* A form is sent once, however often the button is pressed. */
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "1";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  svc.remember = (root) => {
    for (const region of root.querySelectorAll("[data-live]")) region.asSent = region.innerHTML;
  };
  svc.remember(document);
  svc.localise(document);
  setInterval(() => svc.localise(document), 30000);
})();
