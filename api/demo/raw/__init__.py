"""The demo of replication: two stores, the link between them, and what is killed meanwhile."""
