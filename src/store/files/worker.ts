/** The thread of a files store. */
import { serveJobs } from "../logged/helper.ts";
import { filesJobs } from "./jobs.ts";

serveJobs(filesJobs);
