"""Values: column types, their Python and Arrow forms, and their texts.

It promises that a value comes back from each form as it went in. It must never know a table.
"""
