/** Smaller windows and phones: one column, the pages within reach of a thumb, tables as lists; and paper. */
export const SMALL = `
@media (max-width: 1080px) {
  .run-columns, .columns, .columns.lean { grid-template-columns: minmax(0, 1fr); }
  .run-columns { grid-template-rows: none; }
  .run-side { grid-column: auto; grid-row: auto; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .desk { grid-template-columns: minmax(0, 1fr); }
  .desk.at-list > #card, .desk.at-card > #waiting { display: none; }
  .desk.at-card .back { display: block; }
  .desk.at-list .request.at { border-color: var(--line); box-shadow: none; }
}
@media (max-width: 760px) {
  .tabs { gap: 0; flex-wrap: wrap; }
  .tabs a { padding: 7px 9px; white-space: nowrap; }
  body { font-size: 15px; padding-bottom: 58px; }
  .frame { display: flex; flex-direction: column; min-height: 0; background: none; }
  .side { position: static; height: auto; order: 2; padding: 22px 18px 28px; gap: 16px; }
  .side nav ul { grid-template-columns: 1fr 1fr; gap: 2px 8px; }
  .side nav a { padding: 9px 10px; }
  main { padding: 14px 14px 28px; gap: 14px; }
  .top { padding: 10px 14px 0; }
  .top form { flex: 1 1 auto; }
  .top kbd, .js .top kbd { display: none; }
  h1 { font-size: 22px; }
  .card, .approval, .alert { padding: 14px; }
  .table { margin: 0 -14px; padding: 0 14px; }
  .tiles { gap: 10px; }
  .tile { padding: 11px 13px 12px; }
  .tile-value { font-size: 23px; }
  .filters { grid-template-columns: 1fr 1fr; }
  .filters .wide, .filters .check { grid-column: 1 / -1; }
  .filters .wide + button { grid-column: 1 / -1; }
  .filters button { justify-self: stretch; }
  input, select, textarea { font-size: 16px; min-height: 42px; }
  input:not([type="checkbox"]), select { height: 42px; }
  textarea.mono { font-size: 14px; }
  button, .button { min-height: 42px; }
  .copy { min-height: 28px; width: 28px; }
  .approval-state { justify-items: start; grid-auto-flow: column; gap: 10px; align-items: center; }
  .approval-grid { grid-template-columns: minmax(0, 1fr); gap: 12px; }
  .decide { grid-template-columns: 1fr 1fr; }
  .decide .field { grid-column: 1 / -1; }
  .decide button { min-height: 48px; font-size: 16px; }
  .request { padding: 12px; }
  .line { white-space: pre-wrap; overflow-wrap: anywhere; }
  .card-field { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts.bar { gap: 10px 22px; padding: 12px 14px; }
  .facts.wide { grid-template-columns: minmax(0, 1fr); }
  .step-time, .record-head time { margin-left: 0; }
  .halted { padding: 11px 14px; }
  .halted:not(.whole) { padding: 2px 14px; }
  .keys-hint.js-only { display: none; }
  .js .keys-hint { display: none; }
  table, thead, tbody, tr, td { display: block; }
  thead { display: none; }
  tbody tr { padding: 10px 0; border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td, td:last-child { display: grid; grid-template-columns: 92px minmax(0, 1fr); gap: 10px; padding: 3px 0; border: 0; overflow-wrap: anywhere; }
  td::before { content: attr(data-label); color: var(--soft); font-size: 12.5px; }
  td > * { min-width: 0; }
  .runs tbody tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 12px; }
  .runs td, .runs td:last-child { display: block; padding: 1px 0; }
  .runs td::before { content: none; }
  .runs td:nth-child(2) { grid-area: 2 / 1; color: var(--soft); }
  .runs td:nth-child(3) { grid-area: 3 / 1; }
  .runs td:nth-child(3):not(:has(.mark)), .runs td:nth-child(4) { display: none; }
  .runs td:nth-child(5) { grid-area: 1 / 2; text-align: right; }
  .runs td:nth-child(6) { grid-area: 2 / 2; text-align: right; color: var(--soft); }
  .tools tbody tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 12px; }
  .tools td, .tools td:last-child { display: block; padding: 1px 0; }
  .tools td::before { content: none; }
  .tools td:nth-child(n + 3):nth-child(-n + 4), .tools td:nth-child(n + 6):nth-child(-n + 7) { display: none; }
  .tools td:nth-child(2), .tools td:last-child { text-align: right; }
  .tools td:nth-child(n + 5) { color: var(--soft); }
  .small-only { display: inline; }
  td .id:not(.short) { min-width: 0; max-width: 100%; }
  .run-reason { max-width: 100%; white-space: normal; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; }
  .chart .axis { font-size: 20px; }
  td:has(> div:empty) { display: none; }
  td code { overflow-wrap: anywhere; }
  .hash { flex-wrap: wrap; white-space: normal; }
  .quick { display: block; position: fixed; inset: auto 0 0 0; z-index: 10; background: var(--side); color: var(--side-soft); padding-bottom: env(safe-area-inset-bottom); }
  .quick ul { display: grid; grid-template-columns: repeat(5, 1fr); }
  .quick a { position: relative; display: grid; place-items: center; align-content: end; gap: 1px; padding-bottom: 7px; min-height: 56px; color: inherit; text-decoration: none; font-size: 12.5px; font-weight: 560; }
  .quick a[aria-current] { color: #fff; box-shadow: inset 0 2px 0 #83cbb2; }
  .quick .count { position: absolute; top: 5px; left: calc(50% + 7px); font-size: 10.5px; line-height: 15px; min-width: 17px; }
}
@media print {
  .side, .quick, .page-head .aside, form, .copy { display: none; }
  .frame { display: block; }
  body { background: #fff; color: #000; }
  .card, .approval { box-shadow: none; break-inside: avoid; }
}
`;
