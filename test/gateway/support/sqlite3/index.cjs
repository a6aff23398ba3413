/**
 * As much of the `sqlite3` package as mcp-sqlite calls, over the SQLite that this project brings along: the package
 * itself is compiled for minutes where it is installed, and fails where there is no compiler.
 */
const { DatabaseSync } = require("@photostructure/sqlite");

class Database {
  constructor(path, opened) {
    this.db = new DatabaseSync(path);
    setImmediate(opened, null);
  }

  all(sql, values, done) {
    answer(done, () => [
      {},
      this.prepared(sql)
        .all(...values)
        .map(plainRow),
    ]);
  }

  run(sql, values, done) {
    answer(done, () => {
      const { lastInsertRowid, changes } = this.prepared(sql).run(...values);
      return [{ lastID: Number(lastInsertRowid), changes: Number(changes) }];
    });
  }

  prepared(sql) {
    const statement = this.db.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  }
}

/** `work` gives what `this` is in the callback, and what it is handed. */
function answer(done, work) {
  let told;
  try {
    const [self, ...values] = work();
    told = () => done.call(self, null, ...values);
  } catch (error) {
    told = () => done.call({}, error);
  }
  setImmediate(told);
}

/** Integers come as numbers, also where these cannot hold them, and bytes as a Buffer. */
function plainRow(row) {
  const plain = (value) =>
    typeof value === "bigint" ? Number(value) : value instanceof Uint8Array ? Buffer.from(value) : value;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)]));
}

module.exports = { Database, verbose: () => module.exports };
