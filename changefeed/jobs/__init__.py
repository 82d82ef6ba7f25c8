"""Changefeeds as jobs: creating one, running its attempts, and releasing what it held.

`details` is what a job's row says of its feed, `attempt` one run of its pipeline, `reservations`
and `places` what keeps two feeds out of one target and one user out of another's.
"""
