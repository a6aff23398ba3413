// The page's line to the session that does the work: in a worker made from this very file, so that a large ledger does
// not freeze the page, or in the page itself where the browser gives no worker.

import { createSession } from "../session.js";

/** A function that sends to the session. What is sent before the worker runs waits, and is not lost if it never does. */
export function connect(onMessage) {
  const waiting = [];
  let deliver = null;
  const use = (target) => {
    deliver = target;
    for (const message of waiting.splice(0)) deliver(message);
  };
  const inPage = () => use(createSession(onMessage));
  const worker = startWorker();
  if (worker === null) inPage();
  else {
    worker.onmessage = ({ data }) => {
      if (data.type === "ready") use((message) => worker.postMessage(message));
      else onMessage(data);
    };
    worker.onerror = ({ message }) => {
      if (deliver === null) inPage();
      else onMessage({ type: "failed", text: `could not be read: ${message}`, of: "open", name: null });
    };
  }
  return (message) => (deliver === null ? waiting.push(message) : deliver(message));
}

function startWorker() {
  try {
    const source = document.getElementById("core").textContent;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const policy = globalThis.trustedTypes?.createPolicy("svc-viewer", { createScriptURL: (text) => text });
    return new Worker(policy ? policy.createScriptURL(url) : url);
  } catch {
    return null;
  }
}
