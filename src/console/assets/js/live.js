/**
 * Live pages. When the server signals a change, the script fetches the page again and replaces its live regions. A
 * region in which the user is typing is left alone; cards that were decided elsewhere are marked.
 */
(() => {
  const { body } = document;
  if (!body.dataset.liveFrom || !window.EventSource) return;
  let seen = body.dataset.pulse;
  let source = null;
  let timer = null;
  let busy = false;
  let rest = 0;

  const isField = (element) => element.matches("input, textarea, select") && element.type !== "hidden";
  const isDirty = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected && field.selectedIndex > 0);
    return field.value !== field.defaultValue;
  };
  const inUse = (region) => {
    const active = document.activeElement;
    if (active !== null && region.contains(active) && isField(active)) return true;
    return [...region.querySelectorAll("input, textarea, select")].some((field) => isField(field) && isDirty(field));
  };

  const nameOf = (element) => element.id || element.getAttribute("href") || element.dataset.copy || "";
  const openOnes = (region) => [...region.querySelectorAll("details")].map((one) => one.open);

  const exchange = (region, fresh) => {
    const active = region.contains(document.activeElement) ? document.activeElement : null;
    const open = openOnes(region);
    region.className = fresh.className;
    region.replaceChildren(...fresh.childNodes);
    region.asSent = fresh.asSent;
    const details = [...region.querySelectorAll("details")];
    if (details.length === open.length) details.forEach((one, i) => { one.open = open[i]; });
    svc.localise(region);
    svc.readyForms(region);
    svc.foldLong(region);
    svc.watchEnd(region);
    if (active === null) return;
    const again = [...region.querySelectorAll("a, button, [tabindex]")].find((one) => nameOf(one) !== "" && nameOf(one) === nameOf(active));
    if (again) again.focus({ preventScroll: true });
  };

  /* A person is typing here: leave the region, but do not let them decide what is already decided. */
  const markGone = (region, fresh) => {
    for (const card of region.querySelectorAll("article[id]:not(.gone)")) {
      if (fresh.querySelector("#" + CSS.escape(card.id))) continue;
      card.classList.add("gone");
      const note = document.createElement("p");
      note.className = "gone-note";
      note.setAttribute("role", "status");
      note.textContent = "Decided elsewhere.";
      for (const button of card.querySelectorAll("button, input")) button.disabled = true;
      card.append(note);
    }
  };

  const refresh = async () => {
    if (busy) return later();
    busy = true;
    const began = performance.now();
    try {
      const answer = await fetch(body.dataset.liveFrom, { headers: { "x-svc-live": "1" }, redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") return location.reload();
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      svc.remember(page);
      for (const region of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(region.id);
        if (fresh === null || fresh.asSent === region.asSent) continue;
        if (inUse(region)) markGone(region, fresh);
        else exchange(region, fresh);
      }
      body.dataset.pulse = page.body.dataset.pulse || seen;
    } catch {
      /* Away for a moment; the next word from the server tries again. */
    } finally {
      busy = false;
      /* However busy the service is, looking on must not make it busier: the slower the answer, the longer the rest. */
      rest = performance.now() + Math.max(1000, 4 * (performance.now() - began));
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, Math.max(150, rest - performance.now()));
  };
  const hear = (event) => {
    if (event.data === seen) return;
    seen = event.data;
    later();
  };

  const connect = () => {
    if (source !== null || document.hidden) return;
    source = new EventSource("/console/events");
    source.addEventListener("message", hear);
    source.addEventListener("beat", later);
    source.addEventListener("end", () => location.reload());
    source.addEventListener("open", () => body.classList.add("connected"));
    source.addEventListener("error", () => {
      body.classList.remove("connected");
      if (source.readyState !== EventSource.CLOSED) return;
      source = null;
      setTimeout(connect, 5000);
    });
  };
  const disconnect = () => {
    if (source === null) return;
    source.close();
    source = null;
  };
  /* Browsers allow few connections to one host: pages in the background give theirs back. */
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) disconnect();
    else {
      connect();
      later();
    }
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  connect();
})();
