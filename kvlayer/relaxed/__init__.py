"""The relaxed log: a consistent log for a store whose only atom is a cell.

A *write batch* is a set of writes that belong together; an *event* says that one of them replaced
one cell's value. The *sequencer* of a *domain* maps batches to *epochs*, and publishes a *record*
of each that has drained: how many events it has. A record that counts zero is the *quiescence
mark*: everything before it had been written, and nothing behind it had begun. A *reader* gathers
events until it finds a mark, and folds them into one *change set*, so that each state it shows is
one that the store had.

    exchange, event                 kept by whoever writes (`domain`, `events`)
    batch ids, epochs, records      `ids`, `sequencer`; of several processes: `shared`
    segments of a log               `segment`
    change sets, gaps, cuts         `fold`, `reader`, `joint`

The room knows nothing of the rest of the package: the standard library and Arrow are enough to
write a relaxed log and to read one, without a store.

After Paul Khuong, "A consistent-ish log for a relaxed storage system" (2021).
"""
