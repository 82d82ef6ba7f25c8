"""node-postgres: the npm package `pg`, its exact version, in a folder of the machine's cache."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.harness.server_process import ServerProcess
from tests.system.programs import node_modules

pytestmark = pytest.mark.system

SCRIPT = """
const { Client, Pool } = require("pg");
const port = Number(process.argv[2]);
const options = { host: "127.0.0.1", port, user: "root", database: "defaultdb" };
async function main() {
  const found = {};
  const client = new Client(options);
  await client.connect();
  const columns = "id INT8 PRIMARY KEY, note TEXT, f FLOAT8, b BOOL, y BYTEA, at TIMESTAMPTZ";
  await client.query(`CREATE TABLE n (${columns})`);
  const at = new Date("2020-01-02T03:04:05.678Z");
  const values = [1, "höhe", 0.5, true, Buffer.from([0, 255]), at];
  const insert = "INSERT INTO n VALUES ($1, $2, $3, $4, $5, $6) RETURNING id";
  const inserted = await client.query(insert, values);
  found.inserted = [inserted.command, inserted.rowCount, inserted.rows];
  const row = (await client.query("SELECT * FROM n WHERE id = $1", [1])).rows[0];
  found.row = [row.id, row.note, row.f, row.b, row.y.toString("hex"), row.at.toISOString()];
  const named = { name: "by-id", text: "SELECT note FROM n WHERE id = $1", rowMode: "array" };
  found.named = [];
  for (const id of [1, 2]) found.named.push((await client.query({ ...named, values: [id] })).rows);
  await client.query("BEGIN");
  await client.query("INSERT INTO n (id) VALUES (2)");
  try {
    await client.query("INSERT INTO n (id) VALUES (2)");
  } catch (error) {
    found.error = [error.code, error.constraint === undefined ? null : error.constraint];
  }
  await client.query("ROLLBACK");
  found.array = (await client.query("SELECT ARRAY[1, 2] AS a, now() < $1 AS past", [at])).rows[0];
  await client.end();
  const pool = new Pool({ ...options, max: 2 });
  const counts = await Promise.all([1, 2, 3, 4].map(() => pool.query("SELECT count(*) FROM n")));
  found.counts = counts.map((result) => result.rows[0].count);
  await pool.end();
  console.log(JSON.stringify(found));
}
main().catch((error) => { console.error(error); process.exit(1); });
"""


def test_node_postgres_runs_statements_transactions_and_a_pool(tmp_path: Path) -> None:
    script = tmp_path / "client.js"
    script.write_text(SCRIPT)
    with ServerProcess(tmp_path / "data", "--insecure") as server:
        done = subprocess.run(
            ["node", str(script), str(server.pg_port)],
            capture_output=True, text=True, timeout=120,
            env={"NODE_PATH": str(node_modules()), "PATH": "/usr/bin:/usr/local/bin:/bin"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["inserted"] == ["INSERT", 1, [{"id": "1"}]]
    assert found["row"] == ["1", "höhe", 0.5, True, "00ff", "2020-01-02T03:04:05.678Z"]
    assert found["named"] == [[["höhe"]], []]
    assert found["error"][0] == "23505"
    assert found["array"]["past"] is False
    assert found["counts"] == ["1"] * 4
