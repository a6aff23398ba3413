/** Confirmation dialogs for forms whose effect cannot be undone. Without this script the form shows a checkbox. */
(() => {
  const make = (name, text, kind) => {
    const element = document.createElement(name);
    if (text) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };

  svc.dialog = (title, body, buttons) => {
    const dialog = make("dialog", "", "dialog");
    const heading = make("h2", title);
    heading.id = "dialog-title";
    dialog.setAttribute("aria-labelledby", heading.id);
    const row = make("div", "", "actions");
    for (const one of buttons) {
      const button = make("button", one.label, one.kind);
      button.type = "button";
      button.addEventListener("click", () => {
        dialog.close();
        if (one.then) one.then();
      });
      row.append(button);
    }
    dialog.append(heading, body, row);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
  };

  /* A form that is already on the page: the link leads to the same one where there is no script. */
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-dialog]");
    if (link === null || event.ctrlKey || event.metaKey) return;
    const kept = document.getElementById(link.dataset.dialog);
    event.preventDefault();
    const dialog = svc.dialog(kept.dataset.title, kept.content.cloneNode(true), []);
    const cancel = make("button", "Cancel", "plain");
    cancel.type = "button";
    cancel.addEventListener("click", () => dialog.close());
    dialog.querySelector("form .actions").prepend(cancel);
    dialog.querySelector("form input:not([type=hidden])").focus();
  });

  const ready = (root) => {
    for (const form of root.querySelectorAll("form[data-confirm]")) {
      const box = form.querySelector('input[name="confirm"]');
      box.required = false;
    }
  };
  svc.readyForms = ready;
  ready(document);

  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      if (!form.dataset.confirm) return;
      const box = form.querySelector('input[name="confirm"]');
      if (box.checked) return;
      event.preventDefault();
      event.stopPropagation();
      const submitter = event.submitter;
      const about = form.querySelector(".confirm-about");
      const body = about === null ? make("p", form.dataset.confirm) : about.cloneNode(true);
      svc.dialog(form.dataset.verb + "?", body, [
        { label: "Cancel", kind: "plain" },
        {
          label: form.dataset.verb,
          kind: "danger solid",
          then: () => {
            box.checked = true;
            form.requestSubmit(submitter);
          },
        },
      ]);
    },
    true,
  );
})();
