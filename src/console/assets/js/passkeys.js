/** Forms that a passkey goes with: makes one, or signs what the form will send, and then sends the form. */
(() => {
  const webauthn = globalThis.SimpleWebAuthnBrowser;

  const ask = async (url, form, submitter) => {
    const fields = new URLSearchParams(new FormData(form, submitter));
    const answer = await fetch(url, { method: "POST", body: fields, redirect: "manual", cache: "no-store", headers: { accept: "application/json" } });
    if (!answer.ok || !(answer.headers.get("content-type") || "").startsWith("application/json")) throw new Error(await reason(answer));
    return answer.json();
  };
  const reason = async (answer) => {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const said = page.querySelector("main .said, main p");
    return said === null ? "The server refused." : said.textContent;
  };
  const tell = (form, text) => {
    let note = form.querySelector(".passkey-note");
    if (note === null) {
      note = document.createElement("p");
      note.className = "passkey-note bad";
      note.setAttribute("role", "alert");
      form.append(note);
    }
    note.textContent = text;
  };
  const put = (form, name, value) => {
    let field = form.querySelector('input[name="' + name + '"]');
    if (field === null) {
      field = document.createElement("input");
      field.type = "hidden";
      field.name = name;
      form.append(field);
    }
    field.value = JSON.stringify(value);
  };
  const make = async (form, submitter) => {
    const optionsJSON = await ask("/console/passkeys/options", form, submitter);
    put(form, "response", await webauthn.startRegistration({ optionsJSON }));
  };
  const sign = async (form, submitter) => {
    const { payload, options } = await ask(form.dataset.challenge, form, submitter);
    put(form, "signature", { payload, assertion: await webauthn.startAuthentication({ optionsJSON: options }) });
  };

  /* A plain denial needs no passkey. */
  const isFree = (form, submitter) => form.dataset.passkey === "sign" && submitter !== null && submitter.value === "deny";

  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      const { submitter } = event;
      if (!form.dataset.passkey || event.defaultPrevented || form.dataset.signed || isFree(form, submitter)) return;
      event.preventDefault();
      const work = form.dataset.passkey === "create" ? make : sign;
      work(form, submitter).then(
        () => {
          form.dataset.signed = "1";
          form.requestSubmit(submitter);
        },
        (error) => tell(form, error.name === "NotAllowedError" ? "The passkey was not used. Nothing was sent." : error.message),
      );
    },
    true,
  );
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-signed]")) delete form.dataset.signed;
  });
})();
