/** Fields, buttons, dialogs. */
export const FORMS = `
button, .button, input, select, textarea { font: inherit; color: inherit; }
button, .button { display: inline-flex; align-items: center; justify-content: center; gap: 6px; min-height: 34px; padding: 5px 14px; border: 1px solid var(--edge); border-radius: 8px; background: var(--card); color: var(--ink); font-weight: 550; text-decoration: none; cursor: pointer; white-space: nowrap; }
button:hover, .button:hover { background: var(--sunk); }
button:disabled { opacity: 0.5; cursor: default; }
button.primary, .button.primary, .button.on { background: var(--accent); border-color: var(--accent); color: var(--accent-ink); }
button.good { background: var(--good); border-color: var(--good); color: var(--card); }
button.danger { border-color: color-mix(in srgb, var(--bad) 55%, transparent); color: var(--bad); }
button.danger.solid { background: var(--bad); border-color: var(--bad); color: var(--card); }
button.primary:hover, .button.primary:hover, .button.on:hover, button.good:hover, button.danger.solid:hover { filter: brightness(1.1); background: var(--accent); }
button.good:hover { background: var(--good); }
button.danger.solid:hover { background: var(--bad); }
button.danger:hover { background: var(--bad-wash); }
.copy { align-items: center; justify-content: center; width: 22px; min-height: 22px; padding: 0; border: 0; border-radius: 5px; background: none; color: var(--soft); flex: none; vertical-align: middle; }
.copy::before { content: ""; width: 9px; height: 11px; border: 1.5px solid currentColor; border-radius: 2px; box-shadow: 2px -2px 0 -0.5px var(--card), 2px -2px 0 1px currentColor; }
.copy.done { color: var(--good); }
.copy.done::before { width: 11px; height: 6px; border-width: 0 0 2px 2px; border-radius: 0; box-shadow: none; transform: rotate(-45deg) translate(1px, -1px); }

input, select, textarea { width: 100%; min-height: 34px; padding: 6px 10px; border: 1px solid var(--edge); border-radius: 8px; background: var(--card); }
input:not([type="checkbox"]), select { height: 36px; }
textarea { resize: vertical; line-height: 1.55; }
textarea.mono { font-size: 12.5px; tab-size: 2; }
::placeholder { color: var(--soft); opacity: 0.75; }
input:placeholder-shown { text-overflow: ellipsis; }
input:focus-visible, select:focus-visible, textarea:focus-visible { outline-offset: -1px; border-radius: 8px; }
input[type="checkbox"] { width: 16px; height: 16px; min-height: 0; margin: 0; accent-color: var(--accent); flex: none; }
.field { display: grid; gap: 4px; min-width: 0; align-content: start; }
.label, legend { font-size: 12.5px; font-weight: 560; color: var(--soft); }
.check { display: inline-flex; align-items: center; gap: 8px; }
.js .confirm, .js form > .confirm-about { display: none; }
fieldset { margin: 0; padding: 0; border: 0; display: grid; gap: 6px; min-width: 0; }
.form { display: grid; gap: 13px; justify-items: stretch; }
.form > button, .form > .actions { justify-self: start; }
.form > .confirm { order: 1; }
.form > button, .form > .actions { order: 2; }
.inline { display: inline-flex; align-items: center; gap: 8px; flex-wrap: wrap; }
.inline button { min-height: 28px; padding: 2px 11px; }
.card > .inline { justify-self: start; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; align-items: start; }
.actions { display: flex; flex-wrap: wrap; gap: 8px; }
.boxes { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0; padding: 0; border: 0; }
.boxes legend { padding: 0; margin-bottom: 4px; }
.filters { display: grid; grid-template-columns: minmax(180px, 2fr) repeat(auto-fit, minmax(110px, 1fr)); gap: 10px 12px; align-items: end; }
.filters .check { padding-bottom: 7px; }
.filters button { justify-self: start; }
.disclosed > summary { display: inline-block; padding: 3px 0; color: var(--accent); font-weight: 550; cursor: pointer; list-style: none; }
.disclosed > summary::before { content: "+"; display: inline-block; width: 15px; font-weight: 640; }
.disclosed[open] > summary::before { content: "\\2212"; }
.disclosed > summary::-webkit-details-marker { display: none; }
.disclosed > .table { margin: 10px 0 0; padding: 0; }
.disclosed > form, .disclosed > div:not(.table) { margin-top: 10px; padding: 14px; border: 1px solid var(--line); border-radius: var(--radius); background: var(--sunk); }

.dialog { width: min(440px, calc(100vw - 32px)); padding: 22px; border: 1px solid var(--edge); border-radius: 14px; background: var(--card); color: var(--ink); box-shadow: 0 20px 60px rgb(0 0 0 / 25%); }
.dialog::backdrop { background: rgb(10 18 14 / 45%); }
.dialog h2 { font-size: 18px; margin-bottom: 10px; }
.dialog:has(form) { width: min(560px, calc(100vw - 32px)); }
.dialog .confirm-about { display: grid; gap: 10px; }
.dialog .actions { justify-content: flex-end; margin-top: 20px; }
.dialog form > .actions { justify-self: end; margin-top: 6px; }
.dialog form .row { grid-template-columns: 1fr 1fr; }
.dialog .actions:empty { display: none; }
.shortcuts { display: grid; gap: 6px; }
.shortcuts div { display: grid; grid-template-columns: 110px 1fr; }
.shortcuts dt { font-family: var(--mono); font-size: 12.5px; }
`;
