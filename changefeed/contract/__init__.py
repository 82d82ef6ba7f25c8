"""The types that feeds share with sinks and encoders: changes, boundaries and options.

It promises that a batch of changes says all that a sink needs of its rows. It must never know which
sink or which feed there is.
"""
