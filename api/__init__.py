"""The doors: everything by which a user reaches the store, and the node that assembles it.

`node` builds a node from a data folder and options; `embedded` is the API in process
(`tailrace.open`, `tailrace.aopen`); `http/` is REST; `cli/` the command line; `demo/` the demo.
Doors translate: bytes to statements, results and errors to what the client speaks. They must never
hold a rule of SQL, of transactions or of feeds; a door that is taken away leaves the others whole.
"""
