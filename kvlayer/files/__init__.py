"""The files of a store: its data folder and who may open it, disks, syncs, spare descriptors.

Never knows: what the files hold.
"""
