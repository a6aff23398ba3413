// The page's line to the session that does the work: in a worker made from this very file, so that a large ledger does
// not freeze the page, or in the page itself where the browser gives no worker.

import { createSession } from "../session.js";

export function connect(onMessage) {
  const worker = startWorker();
  if (worker === null) return createSession((message) => onMessage(message));
  worker.onmessage = ({ data }) => onMessage(data);
  worker.onerror = ({ message }) =>
    onMessage({ type: "failed", text: `could not be read: ${message}`, of: "open", name: null });
  return (message) => worker.postMessage(message);
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
