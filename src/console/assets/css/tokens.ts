/** The colours and measures that everything else is made of; paper and ink by day, the same by night. */
export const TOKENS = `
:root {
  color-scheme: light dark;
  --ground: #f5f4ef;
  --card: #fffefb;
  --sunk: #f0eee7;
  --ink: #1a2420;
  --soft: #56625c;
  --line: #e3e0d6;
  --edge: #cbc7ba;
  --accent: #1c5b4a;
  --accent-ink: #ffffff;
  --accent-wash: #e4efe9;
  --good: #1a6a42;
  --good-wash: #e1f0e7;
  --bad: #ac2219;
  --bad-wash: #fae8e5;
  --warn: #7d4f00;
  --warn-wash: #f8edd3;
  --info: #28578a;
  --info-wash: #e5edf6;
  --quiet: #56625c;
  --quiet-wash: #ecebe4;
  --alarm: #a81e16;
  --alarm-ink: #fff;
  --side: #12211b;
  --side-ink: #e4ece7;
  --side-soft: #9db1a6;
  --side-line: #25392f;
  --side-on: #1e362c;
  --allowed: #4b9a78;
  --would_block: #d0a24a;
  --waiting: #5f8cbd;
  --blocked: #cb5348;
  --r0: #1c5b4a; --r1: #4b9a78; --r2: #8fbfa6; --r3: #d0a24a; --r4: #b8743c; --r5: #5f8cbd; --r6: #8d74ad; --r7: #77837c;
  --shadow: 0 1px 2px rgb(26 36 32 / 5%), 0 2px 8px rgb(26 36 32 / 4%);
  --radius: 10px;
  --sans: "Inter", "Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif;
  --mono: ui-monospace, "JetBrains Mono", "JetBrains Mono Variable", "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1311;
    --card: #151b18;
    --sunk: #101613;
    --ink: #e4eae6;
    --soft: #9fada6;
    --line: #262f2a;
    --edge: #3b4740;
    --accent: #83cbb2;
    --accent-ink: #0b1a14;
    --accent-wash: #16291f;
    --good: #76d09c;
    --good-wash: #13291d;
    --bad: #ff9d93;
    --bad-wash: #371a17;
    --warn: #e7bb63;
    --warn-wash: #2e2410;
    --info: #94bfeb;
    --info-wash: #152537;
    --quiet: #9fada6;
    --quiet-wash: #1e2622;
    --alarm: #8f1d16;
    --side: #0a0f0d;
    --side-line: #1d2823;
    --side-on: #17241e;
    --allowed: #4b9a78;
    --would_block: #c6983f;
    --waiting: #5f8cbd;
    --blocked: #d1594e;
    --r0: #2f7d66; --r7: #66726b;
    --shadow: none;
  }
}
`;
