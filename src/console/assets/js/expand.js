/**
 * Folds long card values once the page has loaded and records which ones the reader opened. The checkbox that confirms
 * an irreversible call is enabled after the reader has opened all of them.
 */
(() => {
  const MORE = "More to read below";
  const opened = new Set();
  const keyOf = (one) => one.dataset.long;
  const longOnes = (root) => [...root.querySelectorAll("details[data-long]")];
  /* The long values that have to be read before this box. */
  const scopeOf = (second) => longOnes(second.closest(second.dataset.after) || document.querySelector(second.dataset.after));
  const isUnread = (one) => !opened.has(keyOf(one));

  const offer = () => {
    for (const second of document.querySelectorAll(".second[data-after]")) {
      if (second.closest(".gone")) continue;
      const left = scopeOf(second).filter(isUnread).length;
      const wait = second.querySelector(".expand-first");
      const what = left === 1 ? "the long value" : "the " + left + " long values";
      wait.hidden = left === 0;
      wait.querySelector("span").textContent = left === 0 ? "" : "Open " + what + " above first.";
      const box = second.querySelector("input");
      box.disabled = left > 0;
      if (left > 0) box.checked = false;
      const form = second.closest("form");
      const approve = form.querySelector('button[value="approve"]');
      if (approve) approve.disabled = left > 0;
      const hint = form.querySelector(".more-below");
      if (hint) hint.textContent = left > 0 ? "Open " + what + " to approve" : MORE;
    }
  };

  svc.foldLong = (root) => {
    for (const one of longOnes(root)) if (!opened.has(keyOf(one))) one.open = false;
    offer();
  };
  const showAll = (second) => {
    const first = scopeOf(second).find(isUnread);
    for (const one of scopeOf(second)) {
      opened.add(keyOf(one));
      one.open = true;
    }
    offer();
    if (first === undefined) return false;
    first.querySelector("summary").focus({ preventScroll: true });
    first.scrollIntoView({ block: "start" });
    return true;
  };

  /* Where the buttons stick to the edge of a phone, they show that the card continues below them, or what to open first. */
  const watchEnd = (root) => {
    for (const verbs of root.querySelectorAll(".approval .verbs, #decide .verbs")) {
      const hint = document.createElement("a");
      hint.className = "more-below";
      hint.textContent = MORE;
      hint.href = "#" + verbs.closest("[id]").id;
      hint.hidden = true;
      verbs.prepend(hint);
      const end = verbs.previousElementSibling;
      hint.addEventListener("click", (event) => {
        event.preventDefault();
        const second = hint.closest("form").querySelector(".second[data-after]");
        if (second === null || !showAll(second)) scrollBy({ top: innerHeight * 0.7 });
      });
      /* The bar and the navigation at the edge hide the end of the card. */
      const rootMargin = "0px 0px -" + (verbs.offsetHeight + 56) + "px 0px";
      const isSeen = ([end]) => end.isIntersecting || end.boundingClientRect.top < 0;
      new IntersectionObserver((seen) => (hint.hidden = isSeen(seen)), { rootMargin }).observe(end);
    }
    offer();
  };
  svc.watchEnd = watchEnd;

  /* On a phone the button is far from the box of an irreversible call: it leads to the box, and the values stay open. */
  const phone = matchMedia("(max-width: 760px)");
  document.addEventListener(
    "submit",
    (event) => {
      const box = event.target.querySelector('.second input[name="irreversible"]');
      if (!phone.matches || box === null || box.checked || event.submitter === null || event.submitter.value !== "approve") return;
      event.preventDefault();
      event.stopPropagation();
      const second = box.closest(".second");
      second.scrollIntoView({ block: "center" });
      second.classList.add("asked");
      box.focus({ preventScroll: true });
    },
    true,
  );

  /* It does not bubble. */
  document.addEventListener("toggle", (event) => {
    const one = event.target;
    if (!(one instanceof HTMLElement) || !one.matches("details[data-long]") || !one.open) return;
    opened.add(keyOf(one));
    offer();
  }, true);
  document.addEventListener("click", (event) => {
    const all = event.target.closest("[data-expand]");
    if (all === null) return;
    showAll(all.closest(".second"));
  });
  addEventListener("pageshow", offer);
  svc.foldLong(document);
  svc.watchEnd(document);
})();
