/** Links into the console. The base URL is configured; only encoded ids are added. */
interface ConsoleLinks {
  approval(id: string): string | null;
  approvals(): string | null;
  plan(id: string): string | null;
  run(id: string): string | null;
  alerts(): string | null;
  settings(): string | null;
}

/** `base` can be the URL of the server or of its console. */
export function consoleLinks(base: string | null): ConsoleLinks {
  const root = base === null ? null : base.replace(/(?<!\/)\/+$/, "").replace(/\/console$/, "");
  const at = (path: string) => (root === null ? null : `${root}/console${path}`);
  return {
    approval: (id) => at(`/approvals/${encodeURIComponent(id)}`),
    approvals: () => at("/approvals"),
    plan: (id) => at(`/plans/${encodeURIComponent(id)}`),
    run: (id) => at(`/runs/${encodeURIComponent(id)}`),
    alerts: () => at("/alerts"),
    settings: () => at("/settings"),
  };
}
