"""The process that a store runs in, and its event loop.

`offload` is the one door to threads, `fibre` cuts long work of Python into steps of the loop,
`background` is work that gives way, `collector` and `tuned_process` set the interpreter, and
`child_environment` is what processes get that a server starts.

Never knows: what a store is.
"""
