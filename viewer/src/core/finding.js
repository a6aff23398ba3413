/** What a check found wrong. `where` names the first bad place; `position` is that record's place in the file. */
export class Finding extends Error {
  constructor(problem, where = null, position = null) {
    super(where === null ? problem : `${where}: ${problem}`);
    this.problem = problem;
    this.where = where;
    this.position = position;
  }

  /** The same finding with its place, for a caller that knows where it was reading. */
  at(where, position = null) {
    return this.where === null ? new Finding(this.problem, where, position) : this;
  }
}

/** Runs a check and turns what it throws into a place. Anything but a Finding is a bug and passes through. */
export function locate(where, position, check) {
  try {
    return check();
  } catch (error) {
    throw error instanceof Finding ? error.at(where, position) : error;
  }
}
