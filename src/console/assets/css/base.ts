/** Plain elements: text, links, lists, code, tables. */
export const BASE = `
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 16px; }
body {
  margin: 0;
  background: var(--ground);
  color: var(--ink);
  font: 14px / 1.5 var(--sans);
  font-feature-settings: "cv05", "cv11", "ss03";
}
h1, h2, h3, p, ul, ol, dl, dd, figure, blockquote, pre { margin: 0; padding: 0; }
ul, ol { list-style: none; }
h1 { font-size: 25px; line-height: 1.2; font-weight: 640; letter-spacing: -0.018em; overflow-wrap: anywhere; }
h2 { font-size: 15px; line-height: 1.3; font-weight: 630; letter-spacing: -0.006em; }
h3 { font-size: 11.5px; line-height: 1.4; font-weight: 620; letter-spacing: 0.045em; text-transform: uppercase; color: var(--soft); }
a { color: var(--accent); text-decoration: underline; text-decoration-color: color-mix(in srgb, currentColor 35%, transparent); text-underline-offset: 3px; }
a:hover { text-decoration-color: currentColor; }
b, strong { font-weight: 640; }
code, pre, .mono { font-family: var(--mono); font-size: 0.92em; font-feature-settings: normal; }
code { overflow-wrap: anywhere; }
h1 code { font-size: 0.94em; letter-spacing: -0.03em; }
pre { overflow: auto; }
time { white-space: nowrap; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
main:focus, article:focus, li:focus, #results:focus { outline: none; }
article:focus, li.step:focus { box-shadow: 0 0 0 2px var(--accent); border-radius: var(--radius); }
:target { scroll-margin-top: 16px; }
.soft, .hint { color: var(--soft); }
.hint { font-size: 12.5px; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.js-only { display: none; }
.js .js-only { display: inline-flex; }
.skip { position: absolute; left: -999px; top: 8px; z-index: 20; background: var(--card); padding: 8px 14px; border-radius: 8px; }
.skip:focus { left: 8px; }

.table { overflow-x: auto; margin: 0 -18px; padding: 0 18px; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: 12px; font-weight: 560; color: var(--soft); padding: 0 14px 7px 0; white-space: nowrap; border-bottom: 1px solid var(--line); }
td { padding: 9px 14px 9px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
td code { overflow-wrap: normal; }
td .id:not(.short) { min-width: 24ch; max-width: 42ch; }
td .id:not(.short) code { overflow-wrap: anywhere; }
th:last-child, td:last-child { padding-right: 0; }
tbody tr:hover td { background: linear-gradient(var(--sunk), var(--sunk)) no-repeat; }
.part { display: block; }
.short { white-space: nowrap; }
.list li { position: relative; padding-left: 14px; }
.list li::before { content: ""; position: absolute; left: 2px; top: 0.68em; width: 4px; height: 4px; border-radius: 50%; background: currentColor; opacity: 0.5; }
.list.residue { color: var(--soft); }

.chip { display: inline-block; padding: 1px 7px; border-radius: 6px; background: var(--quiet-wash); font-size: 12px; }
.chips { line-height: 1.9; }
.id { display: inline-flex; align-items: center; gap: 4px; }
.hash { display: inline-flex; align-items: center; gap: 7px; white-space: nowrap; vertical-align: bottom; }
.ribbon { flex: none; opacity: 0.95; }
.r0 { fill: var(--r0); } .r1 { fill: var(--r1); } .r2 { fill: var(--r2); } .r3 { fill: var(--r3); }
.r4 { fill: var(--r4); } .r5 { fill: var(--r5); } .r6 { fill: var(--r6); } .r7 { fill: var(--r7); }

.mark { display: inline-block; padding: 1px 8px; border-radius: 20px; font-size: 12px; line-height: 1.55; font-weight: 540; white-space: nowrap; background: var(--quiet-wash); color: var(--quiet); }
.mark.good { background: var(--good-wash); color: var(--good); }
.mark.bad { background: var(--bad-wash); color: var(--bad); }
.mark.warn { background: var(--warn-wash); color: var(--warn); }
.mark.info { background: var(--info-wash); color: var(--info); }
`;
