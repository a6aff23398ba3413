/** Keyboard shortcuts: `g` and a letter opens a page, `j` and `k` move through a list, `?` shows the list of keys. */
(() => {
  const HELP = [
    ["g then o", "Overview"],
    ["g then a", "Approvals"],
    ["g then r", "Runs"],
    ["g then l", "Alerts"],
    ["g then t", "Tools"],
    ["g then p", "Policy"],
    ["g then i", "Impact"],
    ["g then e", "Evidence"],
    ["g then s", "Settings"],
    ["Ctrl K", "Go to a page, run, agent or action"],
    ["/", "Find anything"],
    ["j and k", "Next and previous request, step or run"],
    ["Enter", "Open it"],
    ["a and d", "Go to the Approve or Deny button"],
    ["?", "Show this list"],
  ];
  let going = 0;

  const isTyping = (target) => target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
  const listed = () => [...document.querySelectorAll("li.request, li.step, main tbody tr")];
  const focusable = (item) => (item.matches("tr, li.request") ? item.querySelector("a") : item);

  const move = (by) => {
    const items = listed();
    if (items.length === 0) return;
    const at = items.findIndex((item) => item.contains(document.activeElement));
    const next = items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + by))];
    const target = focusable(next);
    if (target === null) return;
    target.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const toDecision = (value) => {
    const card = document.querySelector("article.approval:not(.gone)");
    const button = card && card.querySelector('button[name="decision"][value="' + value + '"]');
    if (button) button.focus();
  };
  const help = () => {
    if (document.querySelector("dialog[open]")) return;
    const list = document.createElement("dl");
    list.className = "shortcuts";
    for (const [keys, what] of HELP) {
      const row = document.createElement("div");
      const name = document.createElement("dt");
      const text = document.createElement("dd");
      name.textContent = keys;
      text.textContent = what;
      row.append(name, text);
      list.append(row);
    }
    svc.dialog("Keyboard shortcuts", list, [{ label: "Close", kind: "plain" }]);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const { key } = event;
    if (Date.now() - going < 1500) {
      going = 0;
      const link = document.querySelector('#nav a[data-key="' + CSS.escape(key) + '"]');
      if (link) link.click();
      return;
    }
    if (key === "g") going = Date.now();
    else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "a") toDecision("approve");
    else if (key === "d") toDecision("deny");
    else if (key === "?") help();
    else if (key === "/") {
      const search = document.getElementById("find");
      if (search === null) return;
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
})();
