"""The dashboard: two pages for people, served by the same process as everything else.

`overview` says how each feed fares, `comparison` runs one workload on three copies of a table
whose feeds differ only in their schema feed, and `api.http.routes.dashboard_routes` puts both on
the wire as server-sent events. What the browser runs lies in `static/`: no build step, no inline
script, nothing from another host, and third parties' files under `static/vendor/` with their
licences.

Promises: a page that is slow or closed costs the server nothing but its socket (every event is the
newest state, and nothing is queued); names are shown as text whatever they hold; a page says what
SQL its buttons run. Never knows how feeds work: it asks the node what anybody may ask.
"""
