"""The context of execution: services, the acting user, the open transaction, relations.

The plan cache, activity and advisory locks live here, too. It promises that a plan is used
only under the descriptors that it was made from. It must never know a statement's grammar.
"""
