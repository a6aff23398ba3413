/** For readers who followed a link from another site: goes on from here, with the part behind the # kept. */
export const ARRIVE = `
"use strict";
location.replace(document.querySelector("a").getAttribute("href") + location.hash);
`;
