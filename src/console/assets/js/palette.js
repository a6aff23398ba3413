/* The palette: Ctrl K opens one field that goes to a page, a run, an agent, a tool, a request or an action of this page.
   It reads the navigation and the search page, so it shows only what the user can see. It decides nothing on its own. */
(() => {
  const MOST = 12;
  const LONGEST = 90;
  const make = (name, attributes, text) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  };
  const goTo = (href) => () => location.assign(href);

  /* Only the style separates the parts of a link. */
  const textOf = (element) => {
    const parts = [];
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (walk.currentNode.data.trim()) parts.push(walk.currentNode.data.trim());
    const text = parts.join(" ");
    return text.length > LONGEST ? text.slice(0, LONGEST) + "…" : text;
  };
  const links = () => [...document.querySelectorAll("#nav a"), ...document.getElementById("further-pages").content.querySelectorAll("a")];
  const pages = () => links().map((link) => ({ kind: "Page", label: [...link.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim(), run: goTo(link.href) }));
  /* A button is focused, never pressed: what it does is still asked for by the person. */
  const toButton = (button) => () => { button.scrollIntoView({ block: "center" }); button.focus(); };
  const actions = () => {
    const halt = document.querySelector(".halt-now");
    const own = [...document.querySelectorAll("main button.primary, main button.danger, main button.good, main a.button.danger")].filter((one) => one.checkVisibility() && !one.disabled);
    const logout = document.querySelector("form.logout button");
    return [
      ...own.map((button) => ({ kind: "Action", label: button.textContent.trim(), run: toButton(button) })),
      ...(halt ? [{ kind: "Action", label: "Halt new calls", run: () => halt.click() }] : []),
      ...(logout ? [{ kind: "Action", label: "Log out", run: toButton(logout) }] : []),
    ];
  };

  const KINDS = [["/console/runs/", "Run"], ["/console/agents/", "Agent"], ["/console/actors/", "Agent"], ["/console/runs?actor=", "Agent"], ["/console/tools/", "Tool"], ["/console/approvals/", "Request"], ["/console/incidents/", "Incident"]];
  const found = async (text, signal) => {
    const answer = await fetch("/console/search?" + new URLSearchParams({ q: text }), { signal, cache: "no-store" });
    if (!answer.ok) return [];
    const path = (href) => href.slice(location.origin.length);
    const kindOf = (href) => (KINDS.find(([start]) => path(href).startsWith(start)) || [])[1];
    if (answer.redirected) return kindOf(answer.url) ? [{ kind: kindOf(answer.url), label: text, run: goTo(answer.url) }] : [];
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const seen = new Map();
    for (const link of page.querySelectorAll("main a[href]")) {
      const href = new URL(link.getAttribute("href"), location.href).href;
      const kind = kindOf(href);
      const label = textOf(link.querySelector(".item-main") || link);
      if (kind && label && label !== "All" && label !== "this request" && !seen.has(href)) seen.set(href, { kind, label, run: goTo(href) });
    }
    return [...seen.values()];
  };

  const open = () => {
    if (document.querySelector("dialog[open]")) return;
    const body = make("div", { class: "palette" });
    const field = make("input", { type: "text", role: "combobox", "aria-label": "Go to a page, run, agent or action", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", autocomplete: "off", maxlength: "256", placeholder: "Page, run, agent or action" });
    const list = make("ul", { role: "listbox", id: "palette-list", "aria-label": "Results" });
    const count = make("p", { class: "unseen", role: "status" });
    const none = make("p", { class: "soft" }, "Nothing matches. Enter searches everything.");
    body.append(field, list, none, count);
    const dialog = svc.dialog("Go to", body, [{ label: "Close", kind: "plain" }]);
    const fixed = [...pages(), ...actions()];
    let items = [];
    let at = 0;
    let search = null;
    let timer = null;

    const choose = (next) => {
      at = Math.max(0, Math.min(items.length - 1, next));
      [...list.children].forEach((option, i) => { option.setAttribute("aria-selected", String(i === at)); });
      const option = list.children[at];
      if (option) {
        field.setAttribute("aria-activedescendant", option.id);
        option.scrollIntoView({ block: "nearest" });
      } else field.removeAttribute("aria-activedescendant");
    };
    const act = (item) => {
      dialog.close();
      item.run();
    };
    const show = (next) => {
      items = next.slice(0, MOST);
      list.replaceChildren(...items.map((item, i) => {
        const option = make("li", { role: "option", id: "palette-" + i });
        option.append(make("span", {}, item.label), make("span", { class: "soft" }, item.kind));
        option.addEventListener("click", () => act(item));
        return option;
      }));
      list.hidden = items.length === 0;
      none.hidden = items.length > 0;
      field.setAttribute("aria-expanded", String(items.length > 0));
      count.textContent = items.length === 1 ? "1 result" : items.length + " results";
      choose(0);
    };
    const look = () => {
      const text = field.value.trim();
      const word = text.toLowerCase();
      const near = fixed.filter(({ label }) => label.toLowerCase().includes(word));
      const first = near.filter(({ label }) => label.toLowerCase().startsWith(word));
      const here = [...first, ...near.filter((one) => !first.includes(one))];
      show(here);
      if (search) search.abort();
      clearTimeout(timer);
      if (text.length < 2) return;
      search = new AbortController();
      const { signal } = search;
      timer = setTimeout(() => found(text, signal).then((more) => { if (!signal.aborted) show([...here, ...more]); }, () => {}), 150);
    };
    field.addEventListener("input", look);
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") choose(at + 1);
      else if (event.key === "ArrowUp") choose(at - 1);
      else if (event.key === "Enter" && items[at]) act(items[at]);
      else if (event.key === "Enter" && field.value.trim()) location.assign("/console/search?" + new URLSearchParams({ q: field.value.trim() }));
      else return;
      event.preventDefault();
    });
    dialog.addEventListener("close", () => { if (search) search.abort(); clearTimeout(timer); });
    look();
    field.focus();
  };

  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("[data-go-to]")) open();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (document.getElementById("nav") === null) return;
    event.preventDefault();
    open();
  });
})();
