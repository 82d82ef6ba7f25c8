"""What statements are executed with: services, the acting user, the open transaction, relations.

What lives here: the plan cache, activity and advisory locks, too. It promises that a plan is used
only under the descriptors that it was made from. It must never know a statement's grammar.
"""
