"""The routes of the HTTP door, one module for each thing that is asked for.

Each is a router that the app mounts. They hold no state of their own; errors are problem documents
whoever raises them.
"""
