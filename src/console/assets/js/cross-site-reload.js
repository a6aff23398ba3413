/** Reloads the page for readers who followed a link from another site. Keeps the fragment of the URL. */
"use strict";
location.replace(document.querySelector("a").getAttribute("href") + location.hash);
