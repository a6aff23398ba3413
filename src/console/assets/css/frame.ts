/** The frame: the dark side with its navigation, the halt banner, pages without a frame. */
export const FRAME = `
.frame { display: grid; grid-template-columns: 208px minmax(0, 1fr); min-height: 100vh; background: linear-gradient(var(--side), var(--side)) 0 0 / 208px 100% no-repeat; }
.side { position: sticky; top: 0; height: 100vh; display: flex; flex-direction: column; gap: 22px; padding: 20px 12px 16px; background: var(--side); color: var(--side-ink); overflow-y: auto; }
.side a { color: inherit; text-decoration: none; }
.side :focus-visible { outline-color: #83cbb2; }
.brand { display: flex; align-items: center; gap: 10px; padding: 0 10px; font-size: 17px; font-weight: 660; letter-spacing: -0.02em; }
.brand path, .bare-brand path { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.brand .link-a, .bare-brand .link-a { stroke: #e7bb63; }
.brand .link-b, .bare-brand .link-b { stroke: #83cbb2; }
.environment { margin-left: auto; padding: 0 8px; border: 1px solid var(--side-line); border-radius: 20px; font-size: 11.5px; font-weight: 500; letter-spacing: 0; color: var(--side-soft); }
.side nav ul { display: grid; gap: 1px; }
.side nav a { display: flex; align-items: center; gap: 8px; padding: 6px 10px; border-radius: 7px; color: var(--side-soft); font-weight: 510; }
.icon { flex: none; fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linecap: round; stroke-linejoin: round; }
.side nav a:hover { color: var(--side-ink); background: var(--side-on); }
.side nav a[aria-current] { color: #fff; background: var(--side-on); box-shadow: inset 2px 0 0 #83cbb2; }
.count { min-width: 19px; padding: 0 6px; border-radius: 20px; background: #e7bb63; color: #231a05; font-size: 11.5px; font-weight: 640; line-height: 18px; text-align: center; }
.side nav .count { margin-left: auto; }
.side-foot { margin-top: auto; display: grid; gap: 12px; padding: 14px 10px 0; border-top: 1px solid var(--side-line); font-size: 12.5px; }
.chain { display: grid; gap: 2px; color: var(--side-soft); }
.chain .copy { display: none; }
.side .ribbon { --r0: #3a8a72; --r7: #6d7a73; }
.who { display: grid; }
.who-name { font-weight: 590; overflow-wrap: anywhere; }
.who-role { color: var(--side-soft); }
.keys-hint { color: var(--side-soft); font-size: 12px; }
.logout button { width: 100%; min-height: 0; padding: 5px 10px; background: none; border-color: var(--side-line); color: var(--side-soft); }
.logout button:hover { color: var(--side-ink); background: var(--side-on); }

.pane { min-width: 0; }
.top { display: flex; align-items: center; gap: 10px; max-width: 1220px; padding: 14px 36px 0; }
.top form { position: relative; flex: 0 1 420px; display: flex; align-items: center; }
.top form > .icon { position: absolute; left: 10px; color: var(--soft); }
.top input { padding-left: 34px; padding-right: 30px; background: var(--card); border-color: var(--line); }
.top kbd { position: absolute; right: 9px; padding: 0 6px; border: 1px solid var(--edge); border-radius: 5px; color: var(--soft); font: 11.5px var(--mono); }
.top .halt-now { margin-left: auto; }
.button.danger { border-color: color-mix(in srgb, var(--bad) 55%, transparent); color: var(--bad); }
.button.danger:hover { background: var(--bad-wash); }
main { width: 100%; max-width: 1220px; padding: 20px 36px 64px; display: grid; gap: 18px; align-content: start; }
.page-head { display: flex; align-items: flex-start; justify-content: space-between; gap: 12px 24px; flex-wrap: wrap; margin-bottom: 4px; }
.page-head > div:first-child { min-width: 0; flex: 1 1 320px; }
.lead { margin-top: 5px; color: var(--soft); max-width: 74ch; overflow-wrap: anywhere; }
.page-head .aside, .links { display: flex; gap: 8px; flex-wrap: wrap; }
/* Where a form led to a place further down, its message comes along. */
:root:has(:target) .said-now { position: sticky; top: 10px; z-index: 6; box-shadow: 0 6px 20px rgb(26 36 32 / 14%); border-radius: var(--radius); }
body:has(.halted.whole):has(:target) .said-now { top: 54px; }
.run-title { font-family: var(--mono); font-size: 0.86em; letter-spacing: -0.03em; }
.page-head .copy { margin-left: 8px; }

/* A halt of everything is in sight wherever one scrolls to; what else sticks to the top makes room for one line of it. */
#halted:has(.whole) { position: sticky; top: 0; z-index: 30; max-height: 40vh; overflow-y: auto; }
body:has(.halted.whole) .side { top: 44px; height: calc(100vh - 44px); }
html:has(.halted.whole) { scroll-padding-top: 70px; }
.halted:not(.whole) { padding: 4px 24px; }
.halted summary { cursor: pointer; min-height: 36px; display: flex; align-items: center; gap: 8px; overflow-wrap: anywhere; }
.halted summary::before { content: "▸"; }
.halted details[open] summary::before { content: "▾"; }
.halted details { width: 100%; padding-bottom: 4px; }
.halted details[open] { padding-bottom: 10px; display: grid; gap: 6px; }
.halted { display: flex; align-items: flex-start; gap: 6px 20px; flex-wrap: wrap; padding: 11px 24px; background: var(--alarm); color: var(--alarm-ink); }
.halted-title { font-weight: 680; }
.halted ul { flex: 1 1 300px; min-width: 0; overflow-wrap: anywhere; }
.halted .by { opacity: 0.85; }
.halted li { display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: baseline; }
.lift button { min-height: 24px; padding: 0 10px; background: none; border-color: currentColor; color: inherit; }
.lift button:hover { background: rgb(255 255 255 / 16%); }
.halted a { color: inherit; font-weight: 600; }

.quick { display: none; }

.bare { display: grid; place-items: center; min-height: 100vh; }
.bare main { width: min(420px, 100%); padding: 32px 24px; gap: 16px; }
.bare-brand { display: flex; align-items: center; gap: 12px; margin-bottom: 6px; padding: 12px 16px; border-radius: 14px; justify-self: start; background: var(--side); color: #fff; font-size: 22px; font-weight: 660; letter-spacing: -0.02em; }
.button.sign-in { display: flex; white-space: normal; overflow-wrap: anywhere; text-align: center; }
.login { display: grid; gap: 16px; padding: 20px; background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow); }
`;
