/** Navigation icons: line drawings on a grid of 24, in the colour of their text. */
import { type HtmlFragment, safeHtml } from "../html.ts";
import type { NavId } from "../page-context.ts";

const PATHS: Record<NavId | "more" | "search" | "halt", readonly string[]> = {
  overview: ["M4 13h7V4H4zM13 20h7v-9h-7zM4 20h7v-4H4zM13 8h7V4h-7z"],
  approvals: ["M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6z", "M9 12l2.2 2.2L15 10"],
  runs: ["M5 6h2M5 12h2M5 18h2", "M10 6h9M10 12h9M10 18h9"],
  alerts: ["M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15z", "M10 21h4"],
  drills: ["M6 3v18", "M6 4h12l-3 4 3 4H6"],
  tools: [
    "M14.5 6.5a4 4 0 0 1 5-1.5l-2.7 2.7 1.5 1.5L21 6.5a4 4 0 0 1-5.5 5L8 19l-3-3 7.5-7.5a4 4 0 0 1 2-2z",
  ],
  policy: ["M12 4v16M7 20h10M5 8h14", "M5 8l-2.5 6h5zM19 8l-2.5 6h5z"],
  impact: ["M12 3v3M12 18v3M3 12h3M18 12h3", "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z"],
  evidence: ["M7 3h7l4 4v14H7z", "M14 3v4h4M10 12h5M10 16h5"],
  settings: ["M4 7h9M17 7h3M4 17h3M11 17h9", "M15 5v4M9 15v4"],
  more: ["M5 12h.01M12 12h.01M19 12h.01"],
  search: ["M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12z", "M15.5 15.5 20 20"],
  halt: ["M8.5 3.5h7l5 5v7l-5 5h-7l-5-5v-7z", "M8.5 12h7"],
};

export function navIcon(name: keyof typeof PATHS): HtmlFragment {
  const lines = PATHS[name].map((d) => safeHtml`<path d="${d}"/>`);
  return safeHtml`<svg class="icon" viewBox="0 0 24 24" width="17" height="17" aria-hidden="true">${lines}</svg>`;
}
