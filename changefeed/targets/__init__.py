"""What feeds write into: which files and folders are whose, and which feed has one to itself.

It promises that of two feeds into one new table of a mirror only one is created. It must never know
what is written.
"""
