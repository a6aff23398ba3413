/** Asking back before something that cannot be taken back. Without this script, a box has to be ticked instead. */
export const DIALOGS = `
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
      svc.dialog(form.dataset.verb + "?", make("p", form.dataset.confirm), [
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
`;
