"""The catalog: what tables are, and how their rows become keys and values.

What lives here: column types and their values, descriptors and the store of their versions, the
system's own tables, row codecs (compiled per version, shared by writers, readers and feeds), table
readers, leases on descriptors, and jobs. It promises that a descriptor version is published only if
the two-version invariant and the rules of the lock hold, whoever asks; that a row is read rightly
under any version of its table; and that ids are never used again. It must never know SQL text,
changefeeds or sinks.
"""
