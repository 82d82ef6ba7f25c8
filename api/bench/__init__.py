"""Measurements that ship with the program: `tailrace bench`.

Never knows: thresholds. It measures and prints; whether that is good is the reader's to say.
"""
