/** Decides the call on the Policy page while the user types. Without this script a button does it. */
(() => {
  const form = document.querySelector("form[data-try]");
  const region = document.getElementById("trial");
  if (form === null || region === null) return;
  let timer = null;
  let going = null;

  const decide = async () => {
    if (going !== null) going.abort();
    going = new AbortController();
    const { signal } = going;
    const fields = new URLSearchParams(new FormData(form));
    fields.set("do", "try");
    fields.set("live", "yes");
    region.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body: fields, signal, redirect: "manual", cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("trial");
      const typed = region.querySelector('input[name="test_name"]');
      if (fresh === null || signal.aborted) return;
      region.replaceChildren(...fresh.childNodes);
      const name = region.querySelector('input[name="test_name"]');
      if (typed !== null && name !== null) name.value = typed.value;
    } catch {
      /* Away for a moment, or something newer was typed. */
    } finally {
      if (!signal.aborted) region.removeAttribute("aria-busy");
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(decide, 250);
  };
  form.addEventListener("input", (event) => {
    if (!["note", "test_name", "base"].includes(event.target.name)) soon();
  });

  region.addEventListener("click", (event) => {
    const button = event.target.closest("[data-argument]");
    if (button === null) return;
    const field = form.elements.namedItem("args");
    const name = button.dataset.argument;
    let args = null;
    try {
      args = JSON.parse(field.value.trim() || "{}");
    } catch {
      /* As YAML, then. */
    }
    if (args !== null && typeof args === "object" && !Array.isArray(args)) {
      if (!(name in args)) args[name] = "";
      field.value = JSON.stringify(args, null, 2);
    } else field.value = field.value.trimEnd() + "\n" + name + ": ";
    field.focus();
    soon();
  });
})();
