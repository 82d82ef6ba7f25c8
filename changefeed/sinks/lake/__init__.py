"""The common part of sinks of lake tables (Delta, Iceberg).

A *lake table* is files and commits that name them. A feed has one for each of its tables
(`FedTable`), whose changes wait (`HeldRows`) until a commit can hold everything up to one
timestamp; the commit bears a record that says so (`TableRecord`), where a feed begins again.
"""
