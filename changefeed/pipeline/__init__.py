"""The pipeline of one attempt of a feed: from its range feed, through lanes and the gate, to its
sink.

`Pipeline` runs it. What a lane, a boundary and a backfill promise stands with each; `progress` is
how far the attempt has come, `live` what the process knows of the feed across its attempts.
It must never know jobs, nor what kind of sink it writes to.
"""
